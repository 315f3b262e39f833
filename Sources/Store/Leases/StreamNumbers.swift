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

/// The leases of a store that last with streams, where there are several nodes.
package struct StreamLeases {
  private let store: Store

  /// Those of a store.
  package init(of store: Store) { self.store = store }

  /// Another node deletes what is to end: this one only says which of its streams are gone. To be called before the
  /// store reads its journal.
  package func leave() { store.leases.leave() }

  /// The nodes, as `StreamNumbers` has them, whose streams objects last with, but for this one.
  package var nodes: Set<UInt64> { store.leases.otherNodes }

  /// For how long objects last on after the node is gone that had their stream, in milliseconds.
  package var grace: UInt64 { store.streamGrace }

  /// Streams of this node that are gone and that objects last with, by their numbers in ascending order. Those of an
  /// earlier start are given the grace after this one: `isOfThisStart` tells them.
  package func gone(unless isThere: (UInt64) -> Bool, isOfThisStart: (UInt64) -> Bool) -> [UInt64] {
    guard store.condition == .serving else { return [] }
    return store.leases.goneStreams(unless: isThere, isOfThisStart: isOfThisStart, grace: grace)
  }

  /// Streams of other nodes are gone for good. Gives how many of them objects lasted with; these are deleted by and by.
  @discardableResult
  package func end(_ streams: Set<UInt64>) -> Int { store.leases.endOthers { streams.contains($0) } }

  /// Nodes are gone for good: what lasts with their streams is deleted by and by.
  package func end(ofNodes nodes: Set<UInt64>) {
    guard !nodes.isEmpty else { return }
    store.leases.endOthers { nodes.contains(StreamNumbers.node(of: $0)) }
  }
}
