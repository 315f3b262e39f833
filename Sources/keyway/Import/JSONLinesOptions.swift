internal import ArgumentParser

/// What only an import of JSON lines takes: the bounds of what it holds and sends.
struct JSONLinesOptions: ParsableArguments {
  static let names = "--batch, --batch-bytes, --held-references and --held-bytes"

  @Option(help: ArgumentHelp("How many lines are one transaction (default: 1024).", valueName: "lines"))
  var batch: Int?

  @Option(
    help: ArgumentHelp(
      "How large a transaction may be (default: 1000000); the server has request.bodyBytes.", valueName: "bytes"))
  var batchBytes: Int?

  @Option(
    help: ArgumentHelp("How many references may wait for objects further down (default: 1000000).", valueName: "count"))
  var heldReferences: Int?

  @Option(
    help: ArgumentHelp(
      "How many bytes of objects may wait for others that they need (default: 268435456).", valueName: "bytes"))
  var heldBytes: Int?

  /// Whether nobody gave any of it.
  var isUnused: Bool { [batch, batchBytes, heldReferences, heldBytes].allSatisfy { $0 == nil } }

  /// The bounds, with their defaults.
  var limits: ImportLimits {
    var limits = ImportLimits()
    if let batch { limits.batchRows = batch }
    if let batchBytes { limits.batchBytes = batchBytes }
    if let heldReferences { limits.heldReferences = heldReferences }
    if let heldBytes { limits.heldBytes = heldBytes }
    return limits
  }

  func validate() throws {
    if let batch, !(1...ImportLimits.operations).contains(batch) {
      throw ValidationError("--batch is between 1 and \(ImportLimits.operations)")
    }
    if let batchBytes, !(1...(1 << 30)).contains(batchBytes) {
      throw ValidationError("--batch-bytes is between 1 and \(1 << 30)")
    }
    for limit in [heldReferences, heldBytes].compactMap(\.self) where limit < 0 {
      throw ValidationError("--held-references and --held-bytes are at least 0")
    }
  }
}
