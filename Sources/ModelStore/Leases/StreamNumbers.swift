/// The numbers of one node's streams, where several nodes write to one journal: a lease that lasts with a stream has
/// the stream's number in it, from which every node has to know whose stream that is.
///
/// From the highest bit on: a 0, 24 bits of the node's address, 19 random ones of this start, and a count.
package struct StreamNumbers: Hashable, Sendable {
  /// The number of the first stream of this start.
  package let first: UInt64

  private static let startBits: UInt64 = 19
  private static let countBits: UInt64 = 20

  /// The numbers of the node at an address, in a start that `random` tells from its earlier ones.
  package init(node: String, random: UInt64) {
    // FNV-1a, whose low bits are the good ones.
    let hash = node.utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    let start = random & ((1 << Self.startBits) - 1)
    first = (hash & 0xff_ffff) << (Self.startBits + Self.countBits) | start << Self.countBits
  }

  /// Whether a stream is this node's, of this start or an earlier one.
  package func isOwn(_ number: UInt64) -> Bool {
    let bits = Self.startBits + Self.countBits
    return number >> bits == first >> bits
  }
}
