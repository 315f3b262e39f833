/// The end of an import that stopped on the way.
struct ImportFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The first line that failed.
  var cause: ImportError
  /// How many rows were written.
  var rows: Int

  /// The cause, and what is in the store now.
  var description: String { "\(cause)\nstopped; \(rows) rows had been imported" }
}
