public import KeyValueModel

extension ObserverIndex {
  /// What consecutive commits tell the observers: a function of the states before and after, the commits and what is
  /// registered. Live delivery and the replay for somebody who was away are this one function.
  ///
  /// `present` is the state after the last of `commits`. Each event is given to `receive`, those of one commit before
  /// those of the next. Observations of objects that a commit deletes end with it.
  public mutating func tell(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, receive: (ObserverEvent) -> Void
  ) {
    guard !commits.isEmpty else { return }
    var telling = CommitTelling(index: self, state: PastState(before: commits, of: present))
    // The telling must be the only owner of the index while it changes it.
    self = ObserverIndex()
    for commit in commits { telling.events(of: commit).forEach(receive) }
    self = telling.index
  }
}
