/// Names a group of streams that get identical bytes. The owner of the hub chooses the numbers.
package struct ChannelID: Hashable, Sendable {
  let number: UInt64

  /// The channel with this number.
  package init(_ number: UInt64) {
    self.number = number
  }
}
