import KeyValueModel
import Store

/// About how many bytes of memory things take up that a stream has, for the ledger.
enum StreamWeight {
  /// An observation in the index, with what it depends on.
  static let observation = 600
  /// What is kept of an observation that has ended.
  static let formerObservation = 120
  /// A cell with its binding, but for texts.
  static let cell = 700
  /// A stream without a connection, but for its cells. Always counted, since nothing else bounds how many a client has.
  static let cut = 4_200
  /// A row of a live query, but for its values, which it mostly shares with the objects.
  static let row = 200
}
