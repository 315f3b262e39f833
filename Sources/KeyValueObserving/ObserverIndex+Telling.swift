public import KeyValueModel

extension ObserverIndex {
  /// What consecutive commits tell the observers: a function of the states before and after, the commits and what is
  /// registered. Live delivery and the replay for somebody who was away are this one function.
  ///
  /// `present` is the state after the last of `commits`. Each event is given to `receive`, those of one commit before
  /// those of the next. Observations of objects that a commit deletes end with it.
  ///
  /// `changesPerObserver` is the most notifications of one commit for one observer, priors counted, those included that
  /// are not told in the end because a bracket turns out silent or the object is deleted. One more and they are dropped,
  /// nothing is evaluated for that observer for the rest of the commit, and its event is overflown.
  public mutating func tell(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, changesPerObserver: Int = .max,
    receive: (ObserverEvent) -> Void
  ) {
    guard let first = commits.first, count > 0 else { return }
    // With a prior, a plain commit tells two changes.
    if changesPerObserver > 1, commits.count == 1, let plain = plainTelling(of: first, in: present) {
      if case .event(let event) = plain { receive(event) }
      return
    }
    // The telling must be the only owner of the index while it changes it.
    var telling = CommitTelling(
      taking: &self, state: PastState(before: commits, of: present), changesPerObserver: changesPerObserver)
    for commit in commits {
      // Observations end here, but none begins: where there is none, there is nobody left to tell.
      guard telling.index.count > 0 else { break }
      telling.events(of: commit).forEach(receive)
    }
    telling.giveBack(to: &self)
  }
}
