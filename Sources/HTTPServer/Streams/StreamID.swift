/// Names one event stream of a hub; never used twice.
package struct StreamID: Hashable, Sendable {
  /// Counts up from 1 in the order of opening.
  package let number: UInt64

  package init(_ number: UInt64) {
    self.number = number
  }
}
