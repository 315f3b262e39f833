/// The numbers of one node's streams: a lease that lasts with a stream has the stream's number in it, from which every
/// node has to know whose stream that is.
///
/// From the highest bit on: a 0, 24 bits of the node's address, 19 random ones of this start, and a count. A node that
/// has a journal to itself counts from 1, whatever its address: it can have another at its next start.
package struct StreamNumbers: Hashable, Sendable {
  /// The number of the first stream of this start is the next one.
  package let first: UInt64
  private let node: UInt64

  private static let nodeMask: UInt64 = 0xff_ffff
  private static let startBits: UInt64 = 19
  private static let countBits: UInt64 = 20

  /// The numbers of the node at an address, in a start that `random` tells from its earlier ones; nil where the node
  /// has a journal to itself.
  package init(node url: String, random: UInt64?) {
    node = Self.node(at: url)
    guard let random else {
      first = 0
      return
    }
    let start = random & ((1 << Self.startBits) - 1)
    first = node << (Self.startBits + Self.countBits) | start << Self.countBits
  }

  /// Whether a stream is this node's, of this start or an earlier one. That of a journal has all that count from 1.
  package func isOwn(_ number: UInt64) -> Bool {
    let node = Self.node(of: number)
    return node == self.node || first == 0 && node == 0
  }

  /// The node that has a stream: what `node(at:)` gives for its address, or 0 for the one of the journal.
  package static func node(of number: UInt64) -> UInt64 { number >> (startBits + countBits) }

  /// What stands for the node at an address.
  package static func node(at url: String) -> UInt64 {
    // FNV-1a, whose low bits are the good ones.
    let hash = url.utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return max(1, hash & nodeMask)
  }
}
