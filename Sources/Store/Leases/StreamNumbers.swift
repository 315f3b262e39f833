/// The numbers of one node's streams. A lease bound to a stream holds the stream's number, from which every node must
/// be able to tell the node that owns the stream.
///
/// From the highest bit on: a 0, 24 bits of the node's address, 19 random bits of this start, and a count. A node with
/// a journal of its own counts from 1, whatever its address, which can change with the next start.
package struct StreamNumbers: Hashable, Sendable {
  /// The number before that of the first stream of this start.
  package let first: UInt64
  private let node: UInt64

  private static let nodeMask: UInt64 = 0xff_ffff
  private static let startBits: UInt64 = 19
  private static let countBits: UInt64 = 20

  /// Creates the numbers of the node at an address, in a start that `random` distinguishes from earlier ones; `random`
  /// is nil if the node has a journal of its own.
  package init(node url: String, random: UInt64?) {
    node = Self.node(at: url)
    guard let random else {
      first = 0
      return
    }
    let start = random & ((1 << Self.startBits) - 1)
    first = node << (Self.startBits + Self.countBits) | start << Self.countBits
  }

  /// Returns true if a stream is this node's, of this start or an earlier one. A node with a journal of its own also
  /// owns all streams counted from 1.
  package func isOwn(_ number: UInt64) -> Bool {
    let node = Self.node(of: number)
    return node == self.node || first == 0 && node == 0
  }

  /// Returns the node that owns a stream: the number that `node(at:)` returns for its address, or 0 for a node with a
  /// journal of its own.
  package static func node(of number: UInt64) -> UInt64 { number >> (startBits + countBits) }

  /// Returns the number that represents the node at an address.
  package static func node(at url: String) -> UInt64 {
    // FNV-1a, whose low bits are the well-mixed ones.
    let hash = url.utf8.reduce(UInt64(0xcbf2_9ce4_8422_2325)) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
    return max(1, hash & nodeMask)
  }
}

/// The leases of a store that are bound to streams, in a setup with several nodes.
package struct StreamLeases {
  private let store: Store

  /// Creates the view of a store's leases.
  package init(of store: Store) { self.store = store }

  /// Leaves the deletion of expired objects to another node: this one only reports which of its streams are gone. Call
  /// it before the store reads its journal.
  package func leave() { store.leases.leave() }

  /// The other nodes, numbered as by `StreamNumbers`, whose streams have leases bound to them.
  package var nodes: Set<UInt64> { store.leases.otherNodes }

  /// The time for which leases last after the node that had their stream is gone, in milliseconds.
  package var grace: UInt64 { store.streamGrace }

  /// Returns the streams of this node that are gone and have leases bound to them, by number in ascending order.
  /// Streams of an earlier start, as told by `isOfThisStart`, are returned once the grace period after this start is
  /// over.
  package func gone(unless exists: (UInt64) -> Bool, isOfThisStart: (UInt64) -> Bool) -> [UInt64] {
    guard store.condition == .serving else { return [] }
    return store.leases.goneStreams(unless: exists, isOfThisStart: isOfThisStart, grace: grace)
  }

  /// Expires the leases of streams of other nodes that are gone for good. Returns the number of these streams that had
  /// leases; the objects are deleted gradually.
  @discardableResult
  package func end(_ streams: Set<UInt64>) -> Int { store.leases.endOthers { streams.contains($0) } }

  /// Expires the leases of the streams of nodes that are gone for good; the objects are deleted gradually.
  package func end(ofNodes nodes: Set<UInt64>) {
    guard !nodes.isEmpty else { return }
    store.leases.endOthers { nodes.contains(StreamNumbers.node(of: $0)) }
  }
}
