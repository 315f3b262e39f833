/// Streams of other nodes that a write names for objects to last with, by their names: those that are there for the
/// client that writes, with their numbers.
struct NamedStreams: Sendable {
  let numbers: [String: UInt64]

  /// Those with these numbers.
  init(_ numbers: [String: UInt64] = [:]) { self.numbers = numbers }

  /// The number of a stream that is there; nil for every other name.
  subscript(name: String) -> UInt64? { numbers[name] }
}
