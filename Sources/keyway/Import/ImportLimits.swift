import KeywayServer

/// What an import of JSON lines holds in memory and sends at once.
struct ImportLimits: Hashable, Sendable {
  static let lineBytes = 16 << 20
  /// The levels of JSON that are read: more than the server takes in a value, so that it is the server that refuses.
  static let jsonDepth = 128
  /// The most operations of one transaction: what a server takes by default.
  static let operations = RequestLimits().transactionOperations
  /// How many references are remembered as known to be there, twice over: what is forgotten is asked for again.
  static let knownReferences = 100_000
  /// How many questions are asked at a time.
  static let connections = 8

  /// The most lines of a batch: `--batch`.
  var batchRows = 1024
  /// The most bytes of a transaction, which has to stay below the server's `request.bodyBytes`: `--batch-bytes`.
  var batchBytes = 1_000_000
  /// The most references that wait for objects further down: `--held-references`.
  var heldReferences = 1_000_000
  /// The most bytes of lines whose objects cannot be made before objects further down: `--held-bytes`.
  var heldBytes = 256 << 20
}
