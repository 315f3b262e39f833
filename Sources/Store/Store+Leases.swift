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
  var streamGrace: UInt64 { UInt64(max(0, limits.streamLeaseSeconds - 1)) * 1_000 }

  /// Ends no lease from now on.
  package func holdLeases() { leases.hold() }
}
