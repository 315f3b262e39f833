import KeyValueModel

/// What a commit tells that does nothing but set attributes of objects that were there and stay, where all who hear of
/// it observe these attributes themselves.
///
/// No path can lead elsewhere then, no observation ends, and no value depends on another object: nothing needs the
/// states before and after, and what one observer is told is made without regard to the others. So it is told while it
/// is worked out, one observer after the other, and a publisher need not wait for the last event to pass on the first.
struct AttributeNotices {
  /// What one setting does to one observation.
  fileprivate struct Notice {
    let registration: ObserverIndex.Registration
    let id: ObserverIndex.TrackedID
    /// The operation, and which of its keys it is.
    let step: Int
    let keyPosition: Int
    let old: ObjectRecord
    let new: ObjectRecord
  }

  private let revision: Revision
  private let writer: String?
  /// In the order of the operations, and of the keys of each.
  private var notices: [Notice] = []
  /// The places of the notices, those of one observer together and in their order. Numbers, because these are sorted in
  /// a fifth of the time that the notices took, which are counted references.
  private var order: [(observer: UInt64, place: Int)] = []

  /// The most notices that are made without regard to who pays for them.
  private let limit: Int

  /// Finds the observers of a commit. Nil if it does anything else, if anyone else is to be notified of it, or if there
  /// are more notices than the budget has room for; then nothing has been told.
  init?(of commit: Commit, in index: borrowing ObserverIndex, _ budget: ObservationBudget = ObservationBudget()) {
    (revision, writer) = (commit.revision, commit.writer)
    limit = budget.limit / ObservationBudget.stepsPerNotice
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
    // Where there are as many, each operation wrote an object of its own, in the order of these.
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

  /// Adds what a setting does to those who observe the attribute; false where it concerns any others.
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

  /// The order of what is told of one operation, that of `CommitNotifier`.
  private static func precedes(_ one: Notice, _ other: Notice) -> Bool {
    (one.keyPosition, one.registration.cell ?? "", one.registration.position, one.id)
      < (other.keyPosition, other.registration.cell ?? "", other.registration.position, other.id)
  }

  // MARK: Telling

  /// The steps that the notices take.
  var steps: Int { notices.count * ObservationBudget.stepsPerNotice }

  /// Gives the event of each observer as soon as it is made. The limits are those of `ObserverIndex.notify`.
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

  /// What one observer is told: of each operation the priors in order, and the changes as their mirror image.
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

  /// The changes of one observer, as many and as long as one commit may have for it.
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
  /// The notification before the change, or of it, with the values that are asked for.
  fileprivate func change(isPrior: Bool) -> Change {
    let observation = registration.observation
    let (options, key) = (observation.options, registration.attribute ?? 0)
    return Change(
      cell: registration.cell, observation: observation, old: options.contains(.old) ? old.attribute(at: key) : nil,
      new: options.contains(.new) && !isPrior ? new.attribute(at: key) : nil, isPrior: isPrior)
  }
}
