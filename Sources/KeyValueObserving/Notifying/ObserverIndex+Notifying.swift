public import KeyValueModel

extension ObserverIndex {
  /// Determines the events of consecutive commits for the observers: a function of the states before and after, the
  /// commits and the registered observations. Live delivery and the replay for a resuming client both use this
  /// function.
  ///
  /// `present` is the state after the last of `commits`. Each event is passed to `receive`, those of one commit before
  /// those of the next. Observations of objects that a commit deletes end with it.
  ///
  /// `changesPerObserver` is the maximum number of notifications of one commit for one observer. Priors count, and so
  /// do notifications that are dropped in the end because a bracket turns out silent or the object is deleted. With one
  /// more, all are dropped, nothing is evaluated for that observer for the rest of the commit, and its event is
  /// overflowed. `bytesPerObserver` likewise limits the bytes of text in their values.
  ///
  /// `past` is the state before the commits, if the caller has it. It is assumed then that observers are few and that
  /// many commits touch nothing that they read; these commits are skipped. `present` may then be any later state.
  public mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, from past: PastState? = nil,
    changesPerObserver: Int = .max, bytesPerObserver: Int = .max, receive: (ObserverEvent) -> Void
  ) {
    notify(
      commits, of: present, from: past, changesPerObserver: changesPerObserver, bytesPerObserver: bytesPerObserver,
      budget: ObservationBudget(), receive: receive)
  }

  /// Determines the events within a budget for all commits. Clients take turns, those that have used least first. An
  /// observer for which nothing is left receives an overflowed event of the first commit that it misses, after which it
  /// can be brought up to date, and no events of later commits, except of objects that are gone. Returns the remaining
  /// budget, which has the number of steps that each of the commits took.
  @discardableResult
  package mutating func notify(
    _ commits: some BidirectionalCollection<Commit>, of present: ModelState, from past: PastState? = nil,
    changesPerObserver: Int = .max, bytesPerObserver: Int = .max, budget: ObservationBudget,
    receive: (ObserverEvent) -> Void
  ) -> ObservationBudget {
    guard let first = commits.first, !isIdle else { return budget }
    var budget = budget
    // With a prior, a plain commit has two changes.
    if past == nil, changesPerObserver > 1, commits.count == 1,
      let plain = plainNotification(of: first, in: present, bytesPerObserver: bytesPerObserver, &budget)
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
        budget.use(notices: notices.count)
        rest.removeFirst()
      }
      guard !rest.isEmpty else { return budget }
    }
    // The notifier must be the only owner of the index while it changes it.
    var notifier = CommitNotifier(
      taking: &self, state: past ?? PastState(before: rest, of: present), changesPerObserver: changesPerObserver,
      bytesPerObserver: bytesPerObserver, budget: budget)
    notifier.notify(rest, passingOver: past != nil, receive: receive)
    notifier.returnIndex(to: &self)
    return notifier.values.budget
  }
}

extension ObserverIndex {
  /// True if no commit has an effect: nothing is observed, and no collection is followed for future observations.
  var isIdle: Bool { count == 0 && collections.isEmpty }
}

// MARK: - Plain commits

/// The most common commits, handled without `CommitNotifier`, whose features they do not need.
extension ObserverIndex {
  /// The notification of a plain commit.
  enum PlainNotification {
    /// No observer is notified.
    case nothing
    /// One observer is notified, by this event.
    case event(ObserverEvent)
  }

  /// A reader of the state before a plain commit or, with nil for `setting`, after it, within the budget of the commit.
  private struct MeteredReader: ObjectReader {
    let setting: PlainSetting?
    let present: ModelState
    let meter: ReadingWork

    var work: ReadingWork? { meter }

    func record(_ reference: Reference) -> ObjectRecord? {
      guard meter.spend() else { return nil }
      return reference == setting?.object ? setting?.before : present.record(reference)
    }
  }

  /// Determines the notification of a commit that sets one attribute of one object and concerns at most one
  /// observation. Nil for any other commit, which then still has to be handled. `present` is the state after the
  /// commit.
  ///
  /// No path can lead elsewhere, and there is no bracket and no order to determine. All that remains is to update the
  /// folds between reading the old and the new value.
  mutating func plainNotification(
    of commit: Commit, in present: ModelState, bytesPerObserver: Int = .max, _ budget: inout ObservationBudget
  ) -> PlainNotification? {
    guard let setting = commit.plainSetting else { return nil }
    let key = ObservedKey(object: setting.object, key: setting.key)
    var listener: Listener?
    guard findListener(to: key, in: present, &listener) else { return nil }
    guard !setting.isSilent, let listener else {
      refold(key, by: setting.after, in: present)
      return .nothing
    }
    let entry = listener.registration
    let (observation, options) = (entry.observation, entry.observation.options)
    let isAtEnd = entry.attribute == setting.key || tracked[listener.id]?.ends(at: key) == true
    budget.begin(objects: 1)
    // The value of the attribute itself is at hand. Any other value is evaluated within the budget, all of which is
    // available to this observer.
    func value(_ record: ObjectRecord, _ setting: PlainSetting?) -> Value? {
      if isAtEnd { return record.attribute(at: key.key) }
      let meter = ReadingWork(steps: budget.limit)
      let value = self.value(of: observation, in: MeteredReader(setting: setting, present: present, meter: meter))
      budget.count(meter.spentSteps)
      return meter.stop == nil ? value : nil
    }
    let old = options.contains(.old) ? value(setting.before, setting) : nil
    refold(key, by: setting.after, in: present)
    let new = options.contains(.new) ? value(setting.after, nil) : nil
    var told = [Change(cell: entry.cell, observation: observation, old: old, new: new, isPrior: false)]
    if options.contains(.prior) {
      told.insert(Change(cell: entry.cell, observation: observation, old: old, new: nil, isPrior: true), at: 0)
    }
    let isKnown = (old != nil || !options.contains(.old)) && (new != nil || !options.contains(.new))
    let isTooLong =
      !isKnown || bytesPerObserver < .max && told.reduce(0) { $0 + $1.textBytes } > bytesPerObserver
    return .event(
      ObserverEvent(
        observer: entry.observer, revision: commit.revision, writer: commit.writer, changes: isTooLong ? [] : told,
        gone: [], hasOverflowed: isTooLong, isTooLong: isTooLong))
  }

  /// Finds the one observation that depends on a key, directly or through collections. Returns false if that is not
  /// sufficient: there is a second observation, a computed key on the way may suppress the notification, or a rule
  /// applies.
  private func findListener(to key: ObservedKey, in state: ModelState, _ listener: inout Listener?) -> Bool {
    let listeners = listeners(dependingOn: key)
    if let only = listeners.only {
      guard listener == nil || listener == only,
        only.registration.attribute != nil || isHeard(key, by: only.id, in: state)
      else { return false }
      listener = only
    } else if !listeners.isEmpty {
      return false
    }
    guard !collections.isEmpty else { return true }
    for link in collections.links(dependingOn: key) {
      if collections.reads(link, nothingBut: key) {
        guard findListener(to: link.watch, in: state, &listener) else { return false }
        continue
      }
      for dependency in collections.dependencies(of: link) where dependency.observedKey == key {
        guard alwaysNotify(dependency.gates, in: state), findListener(to: link.watch, in: state, &listener) else {
          return false
        }
      }
    }
    return true
  }

  /// Returns true if no computed key on the way from a key to an observation may suppress the notification, and no rule
  /// applies.
  private func isHeard(_ key: ObservedKey, by id: TrackedID, in state: ModelState) -> Bool {
    guard let entry = tracked[id], entry.observation.viewer == nil else { return false }
    return entry.dependencies.allSatisfy { $0.observedKey != key || alwaysNotify($0.gates, in: state) }
  }

  private func alwaysNotify(_ gates: [ObservedKey], in state: ModelState) -> Bool {
    gates.allSatisfy { state.record($0.object)?.entity.notifying($0.key) == .always }
  }

  /// Recomputes the folds of collections that read the attribute of an object, which is `record` by now.
  private mutating func refold(_ attribute: ObservedKey, by record: ObjectRecord, in state: ModelState) {
    guard !collections.isEmpty, !collections.refold(attribute, by: record, in: state) else { return }
    collections.touch(attribute)
    collections.settle(in: state)
  }

  private func value(of observation: Observation, in base: some ObjectReader) -> Value {
    if collections.isEmpty { return observation.value(in: base) }
    if let fold = observation.ownFold, let folded = collections.folded(fold, of: observation.object) {
      if case .value(let value) = folded { return value }
      return .null
    }
    return observation.value(in: FoldingReader(base: base, watches: collections))
  }
}

extension ObserverIndex.Tracked {
  /// Returns true if the observed value is that of this attribute: a path that depends on an attribute other than
  /// through a computed key can only end there.
  fileprivate func ends(at attribute: ObservedKey) -> Bool {
    dependencies.contains { $0.observedKey == attribute && $0.gates.isEmpty }
  }
}
