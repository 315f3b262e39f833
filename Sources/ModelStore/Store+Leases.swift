extension Store {
  /// How many objects end by themselves.
  package var leaseCount: Int { leases.count }

  /// Deletes the objects whose time has come, or whose stream is none of those that `isStreamThere` knows by their
  /// numbers. To be called again and again; what it begins goes on when it has returned. What may not be deleted is
  /// tried again when the store has changed.
  package func endLeases(unless isStreamThere: (UInt64) -> Bool) {
    guard condition == .serving else { return }
    leases.endStreams(unless: isStreamThere)
    leases.deleteDue(in: self, lateBy: isCaretaker ? 0 : Self.lateMilliseconds)
  }

  /// After how long a node deletes what is due that another one should have deleted.
  static var lateMilliseconds: UInt64 { 3_000 }

  /// For how long objects last on after the node is gone that had their stream, in milliseconds: a little shorter than
  /// its clients may come back, as what is due is deleted within a second.
  package var streamGrace: UInt64 { UInt64(max(0, limits.streamLeaseSeconds - 1)) * 1_000 }

  /// Ends no lease from now on.
  package func holdLeases() { leases.hold() }

  // MARK: Streams of several nodes

  /// Another node deletes what is to end: this one only says which of its streams are gone. To be called before the
  /// store reads its journal.
  package func leaveLeases() { leases.leave() }

  /// The nodes, as `StreamNumbers` has them, whose streams objects last with, but for this one.
  package var nodesOfLeases: Set<UInt64> { leases.otherNodes }

  /// Streams of this node that are gone and that objects last with, by their numbers in ascending order. Those of an
  /// earlier start are given some time after this one: `isOfThisStart` tells them.
  package func goneStreams(
    unless isStreamThere: (UInt64) -> Bool, isOfThisStart: (UInt64) -> Bool
  ) -> [UInt64] {
    guard condition == .serving else { return [] }
    return leases.goneStreams(unless: isStreamThere, isOfThisStart: isOfThisStart, grace: streamGrace)
  }

  /// Streams of other nodes are gone for good. Gives how many of them objects lasted with; these are deleted by and by.
  @discardableResult
  package func endLeases(of streams: Set<UInt64>) -> Int { leases.endOthers { streams.contains($0) } }

  /// Nodes are gone for good: what lasts with their streams is deleted by and by.
  package func endLeases(ofNodes nodes: Set<UInt64>) {
    guard !nodes.isEmpty else { return }
    leases.endOthers { nodes.contains(StreamNumbers.node(of: $0)) }
  }
}
