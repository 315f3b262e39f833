/// What a stream sent, or did not send, against the specification.
struct BrokenPromise: Error, Hashable, Sendable, CustomStringConvertible {
  /// What it is.
  var description: String

  init(_ description: String) { self.description = description }
}
