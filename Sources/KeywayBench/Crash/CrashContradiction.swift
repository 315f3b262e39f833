/// Something that a stream told and that cannot be.
struct CrashContradiction: Error, Hashable, Sendable, CustomStringConvertible {
  /// What it is.
  var description: String

  init(_ description: String) { self.description = description }
}
