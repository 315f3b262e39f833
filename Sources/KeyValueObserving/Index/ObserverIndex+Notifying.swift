public import KeyValueModel

extension ObserverIndex {
  /// More objects than these are not looked for in commits.
  private static let objectsLookedFor = 64

  /// What consecutive commits deliver to the observers: a function of the states before and after, the commits and what
  /// is registered. Live delivery and the replay for a resuming client are this one function.
  ///
  /// `present` is the state after the last of `commits`. Each event is given to `receive`, those of one commit before
  /// those of the next. Observations of objects that a commit deletes end with it.
  ///
  /// `changesPerObserver` is the most notifications of one commit for one observer, priors counted, those included that
  /// are not told in the end because a bracket turns out silent or the object is deleted. One more and they are
  /// dropped, nothing is evaluated for that observer for the rest of the commit, and its event is overflowed.
  /// `bytesPerObserver` is the most bytes of text that their values have, likewise.
  ///
  /// `past` is the state before them, where the caller has it; then it is taken that few observe and many commits touch
  /// nothing that they read, and these are passed over. `present` may then be any later state.
  public mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, from past: PastState? = nil,
    changesPerObserver: Int = .max, bytesPerObserver: Int = .max, receive: (ObserverEvent) -> Void
  ) {
    notify(
      commits, of: present, from: past, changesPerObserver: changesPerObserver, bytesPerObserver: bytesPerObserver,
      budget: ObservationBudget(), receive: receive)
  }

  /// The same within a budget for all commits. Clients take turns, those that have used least first. An observer that
  /// is left over has an overflowed event of the first commit that it misses, which can be made up for later, and is
  /// notified of none of the commits after it, except of objects that are gone. Returns the budget as it was left: it
  /// says how many steps each of the commits took.
  @discardableResult
  package mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, from past: PastState? = nil,
    changesPerObserver: Int = .max, bytesPerObserver: Int = .max, budget: ObservationBudget,
    receive: (ObserverEvent) -> Void
  ) -> ObservationBudget {
    guard let first = commits.first, !isIdle else { return budget }
    var budget = budget
    // With a prior, a plain commit tells two changes.
    if past == nil, changesPerObserver > 1, commits.count == 1,
      let plain = plainNotification(of: first, in: present, &budget)
    {
      if case .event(let event) = plain { receive(event) }
      return budget
    }
    var rest = commits[...]
    if past == nil {
      while let commit = rest.first, let notices = AttributeNotices(of: commit, in: self, budget) {
        notices.forEachEvent(
          changesPerObserver: changesPerObserver, bytesPerObserver: bytesPerObserver, receive)
        budget.begin(objects: commit.before.count)
        budget.count(notices.steps)
        rest.removeFirst()
      }
      guard !rest.isEmpty else { return budget }
    }
    // The notifier must be the only owner of the index while it changes it.
    var notifier = CommitNotifier(
      taking: &self, state: past ?? PastState(before: rest, of: present), changesPerObserver: changesPerObserver,
      bytesPerObserver: bytesPerObserver, budget: budget)
    var objects =
      past == nil ? nil : notifier.index.objectsRead(in: notifier.state, atMost: Self.objectsLookedFor)
    for commit in rest {
      // Observations end here, but none begins: where there is none, no observer is left to notify.
      guard !notifier.index.isIdle else { break }
      if let objects, !commit.touchesObject(where: objects.contains) {
        notifier.values.begin(commit)
        notifier.state.apply(commit)
        continue
      }
      notifier.events(of: commit).forEach(receive)
      if objects != nil {
        objects = notifier.index.objectsRead(in: notifier.state, atMost: Self.objectsLookedFor)
      }
    }
    if let last = commits.last { notifier.endMissing(at: last).forEach(receive) }
    notifier.giveBack(to: &self)
    return notifier.values.budget
  }
}

extension ObserverIndex {
  /// True if no commit makes a difference: nothing is observed, and no collection is followed for what will be.
  fileprivate var isIdle: Bool { count == 0 && collections.isEmpty }

  /// The objects that the observed values are read through in a state, nil where they are more than `limit`. A commit
  /// that writes none of them and brackets no key of one notifies no observer, and leaves all dependencies as they are.
  fileprivate func objectsRead(in state: PastState, atMost limit: Int) -> Set<Reference>? {
    guard tracked.count <= limit else { return nil }
    var objects: Set<Reference> = []
    for entry in tracked.values {
      objects.formUnion(entry.observation.objects(in: state))
      guard objects.count <= limit else { return nil }
    }
    return objects
  }
}
