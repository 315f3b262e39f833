/// What an import did.
struct ImportTally: Hashable, Sendable {
  /// How many rows were written.
  var rows = 0
  /// How many were left out, because their objects were there already.
  var skipped = 0
}
