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
