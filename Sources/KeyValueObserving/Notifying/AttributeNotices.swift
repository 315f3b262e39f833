import KeyValueModel

/// The notifications of a commit that only sets attributes of objects that exist before and after it, and whose
/// observers all observe these attributes themselves.
///
/// Then no path can lead elsewhere, no observation ends, and no value depends on another object: the states before and
/// after are not needed, and the event of one observer does not depend on the others. So events are delivered as they
/// are made, one observer after the other, and a publisher can forward the first event before the last one is made.
struct AttributeNotices {
  /// The effect of one setting on one observation.
  fileprivate struct Notice {
    let registration: ObserverIndex.Registration
    let id: ObserverIndex.TrackedID
    /// The number of the operation; `keyPosition` is the position of the key among the keys of the operation.
    let step: Int
    let keyPosition: Int
    let old: ObjectRecord
    let new: ObjectRecord
  }

  private let revision: Revision
  private let writer: String?
  /// The notices in the order of the operations, and of the keys of each.
  private var notices: [Notice] = []
  /// The indexes of the notices, grouped by observer and in order within each group. Indexes are sorted in a fifth of
  /// the time that the notices took, which are counted references.
  private var order: [(observer: UInt64, place: Int)] = []

  /// The maximum number of notices that are made regardless of which clients pay for them.
  private let limit: Int

  /// Finds the observers of a commit. Nil if the commit does anything else, if any other observer has to be notified of
  /// it, or if there are more notices than the budget has room for; then no event has been delivered.
  init?(of commit: Commit, in index: borrowing ObserverIndex, _ budget: ObservationBudget = ObservationBudget()) {
    (revision, writer) = (commit.revision, commit.writer)
    limit = min(budget.limit / ObservationBudget.stepsPerNotice, budget.remainingSteps)
    if let setting = commit.plainSetting {
      let key = ObservedKey(object: setting.object, key: setting.key)
      guard add(key, isSilent: setting.isSilent, step: 0, 0, from: setting.before, to: setting.after, in: index) else {
        return nil
      }
    } else {
      guard addSteps(of: commit, in: index) else { return nil }
    }
    order = notices.enumerated().map { ($1.registration.observer.rawValue, $0) }
    order.sort { $0 < $1 }
  }

  private mutating func addSteps(of commit: Commit, in index: borrowing ObserverIndex) -> Bool {
    let (steps, before) = (commit.steps, commit.before)
    guard before.allSatisfy({ $0.record != nil }) else { return false }
    // If there are as many, each operation wrote a different object, in the order of `before`.
    let isEachItsOwn = steps.count == before.count
    var latest: [Reference: ObjectRecord] = [:]
    if !isEachItsOwn { for (object, record) in before { latest[object] = record } }
    for (number, step) in steps.enumerated() {
      guard case .change(let changes) = step.kind, step.writes.count == 1, let new = step.writes[0].record,
        let old = isEachItsOwn ? before[number].record : latest[step.writes[0].object]
      else { return false }
      let object = step.writes[0].object
      if !isEachItsOwn { latest[object] = new }
      for (position, change) in changes.enumerated() {
        guard new.entity.isAttribute(change.key), change.object == object else { return false }
        let key = ObservedKey(object: object, key: change.key)
        guard add(key, isSilent: change.isSilent, step: number, position, from: old, to: new, in: index) else {
          return false
        }
      }
    }
    return true
  }

  /// Adds the notices of a setting for the observers of the attribute. Returns false if the setting concerns any other
  /// observer, or if there are too many notices.
  private mutating func add(
    _ key: ObservedKey, isSilent: Bool, step: Int, _ keyPosition: Int, from old: ObjectRecord, to new: ObjectRecord,
    in index: borrowing ObserverIndex
  ) -> Bool {
    guard index.collections.isEmpty || index.collections.links(dependingOn: key).isEmpty else { return false }
    for listener in index.listeners(dependingOn: key) {
      guard listener.registration.attribute != nil else { return false }
      guard !isSilent else { continue }
      guard notices.count < limit else { return false }
      notices.append(
        Notice(
          registration: listener.registration, id: listener.id, step: step, keyPosition: keyPosition, old: old, new: new
        ))
    }
    return true
  }

  /// Returns true if one notice precedes another of the same operation, in the order of `CommitNotifier`.
  private static func precedes(_ one: Notice, _ other: Notice) -> Bool {
    (one.keyPosition, one.registration.cell ?? "", one.registration.position, one.id)
      < (other.keyPosition, other.registration.cell ?? "", other.registration.position, other.id)
  }

  // MARK: Telling

  /// The number of notices.
  var count: Int { notices.count }

  /// Passes the event of each observer to `receive` as soon as it is made. The limits are those of
  /// `ObserverIndex.notify`.
  func forEachEvent(changesPerObserver: Int, bytesPerObserver: Int, _ receive: (ObserverEvent) -> Void) {
    var rest = order[...]
    while let first = rest.first {
      let own = rest.prefix { $0.observer == first.observer }
      rest = rest.dropFirst(own.count)
      var told = Told(changesLimit: changesPerObserver, bytesLimit: bytesPerObserver)
      tell(own.map { notices[$0.place] }, &told)
      receive(
        ObserverEvent(
          observer: ObserverID(first.observer), revision: revision, writer: writer, changes: told.changes, gone: [],
          hasOverflowed: told.hasOverflowed, isTooLong: told.isTooLong))
    }
  }

  /// Adds the changes for one observer: for each operation the priors in order, then the changes in reverse order.
  private func tell(_ own: [Notice], _ told: inout Told) {
    var rest = own[...]
    while let first = rest.first {
      var ofStep = rest.prefix { $0.step == first.step }
      rest = rest.dropFirst(ofStep.count)
      if ofStep.count > 1 { ofStep.sort(by: Self.precedes) }
      for notice in ofStep where notice.registration.observation.options.contains(.prior) {
        told.append(notice.change(isPrior: true))
      }
      for notice in ofStep.reversed() { told.append(notice.change(isPrior: false)) }
    }
  }

  /// The changes of one observer, within the limits of number and length for one commit.
  private struct Told {
    let changesLimit: Int
    let bytesLimit: Int
    private(set) var changes: [Change] = []
    private(set) var hasOverflowed = false
    private(set) var isTooLong = false
    private var bytes = 0

    init(changesLimit: Int, bytesLimit: Int) {
      (self.changesLimit, self.bytesLimit) = (changesLimit, bytesLimit)
    }

    mutating func append(_ change: @autoclosure () -> Change) {
      guard !hasOverflowed else { return }
      guard changes.count < changesLimit else { return overflow(isTooLong: false) }
      let change = change()
      if bytesLimit < .max { bytes += change.textBytes }
      guard bytes <= bytesLimit else { return overflow(isTooLong: true) }
      changes.append(change)
    }

    private mutating func overflow(isTooLong: Bool) {
      hasOverflowed = true
      self.isTooLong = isTooLong
      changes = []
    }
  }
}

extension AttributeNotices.Notice {
  /// Returns the notification before the change, or of the change, with the requested values.
  fileprivate func change(isPrior: Bool) -> Change {
    let observation = registration.observation
    let (options, key) = (observation.options, registration.attribute ?? 0)
    return Change(
      cell: registration.cell, observation: observation, old: options.contains(.old) ? old.attribute(at: key) : nil,
      new: options.contains(.new) && !isPrior ? new.attribute(at: key) : nil, isPrior: isPrior)
  }
}
