import KeyValueModel
import KeyValueObserving

/// Checks of the coalesced changes.
extension CoalescingRace {
  /// Checks that an observer with old and new values gets one change for each touched value, which leads to its present
  /// value.
  mutating func compare(
    _ told: [Change], _ observations: [Observation], _ courses: [String: Course]
  ) throws {
    let touched = observations.map(\.keyPath.text).filter { courses[$0]?.count ?? 0 > 0 }
    try agree(told.map(\.observation.keyPath.text) == touched, "told of \(told.map(line)), not of \(touched)")
    for change in told {
      kinds[change.kind.rawValue, default: 0] += 1
      if let course = courses[change.observation.keyPath.text] { try compare(change, course) }
    }
    for course in courses.values where course.count == 0 && !isManual {
      let value = oracle.world.read(observations[0].object.text, path: course.path)
      try agree(value == course.before, "nothing is told of \(course.path), which now is \(value.json)")
    }
  }

  private func compare(_ change: Change, _ course: Course) throws {
    let object = change.observation.object.text
    let now = oracle.world.read(object, path: course.path)
    let place = "\(line(change)) after \(course.before.json)"
    let applied = try Self.apply(change, to: course.before)
    try agree(applied == now, "\(place) gives \(applied.json), not \(now.json)")
    try agree(isManual || course.followed == now, "one by one gives \(course.followed.json), not \(now.json)")
    try agree(change.coalesced == course.count, "\(place): there were \(course.count) changes")
    try agree(change.kind != .setting || change.old == course.before, "\(place): that is another old")
    let expected = course.hasSetting ? nil : difference(course, of: object, now)
    try agree(expected == Self.text(change), "\(place), expected \(expected ?? "a setting")")
  }

  /// Checks that options only select parts of a change, and do not alter it.
  func compare(_ told: [Change], _ asked: [Change]) throws {
    try agree(told.count == asked.count, "\(told.map(line)), and with options \(asked.map(line))")
    for (full, change) in zip(told, asked) {
      let options = change.observation.options
      let expected = Change(
        cell: "c", observation: change.observation, kind: full.kind, indexes: full.indexes,
        old: options.contains(.old) ? full.old : nil, new: options.contains(.new) ? full.new : nil, isPrior: false,
        coalesced: full.coalesced)
      try agree(line(change) == line(expected), "\(line(change)), not \(line(expected))")
    }
  }

  /// The expected difference, or nil if the change must be a setting of the whole value: members are not followed
  /// through keys that may change silently.
  private func difference(_ course: Course, of object: String, _ now: Value) -> String? {
    var owner = object
    for name in course.path.dropLast() {
      guard let key = oracle.world.key(owner, name), key.isStored, key.notifies != "manual",
        let next = oracle.world.target(owner, name)
      else { return nil }
      owner = next
    }
    guard let key = course.path.last.flatMap({ oracle.world.key(owner, $0) }), let then = course.before.elements,
      let now = now.elements
    else { return nil }
    return MemberDifferenceTests.expected(then, now, isOrdered: key.isOrdered)
  }

  private static func text(_ change: Change) -> String? {
    guard change.kind != .setting else { return nil }
    let places = change.indexes.map { "\($0)" } ?? "nil"
    let (old, new) = (change.old?.elements ?? [], change.new?.elements ?? [])
    return "\(change.kind) \(places) \(old.map(\.json)) \(new.map(\.json))"
  }
}
