import KeyValueModel
import KeywayClient

/// What a subscriber shows: a value that every event changes, and that every event has to fit.
struct CrashShown: Sendable {
  /// The values of the observed key paths, by `Object/id keyPath`.
  private(set) var values: [String: Value] = [:]
  /// The rows of the live query.
  private(set) var items = LiveList()

  /// Applies all events of one commit, or the state.
  mutating func apply(_ group: [CrashTold]) throws(CrashContradiction) {
    for told in group {
      switch told.event.event {
      case "change":
        for change in told.changes { try apply(change, isInitial: told.isInitial) }
      case "results", "content":
        do throws(LiveListError) {
          try items.apply(told.event)
        } catch {
          throw CrashContradiction(error.description)
        }
      default:
        throw CrashContradiction("unexpected: \(told.event.event) \(told.event.data)")
      }
    }
    try checkSum()
  }

  private mutating func apply(_ change: Value, isInitial: Bool) throws(CrashContradiction) {
    let name = "\(change.member("object").text ?? "?") \(change.member("keyPath").text ?? "?")"
    if isInitial {
      values[name] = change.member("new")
      return
    }
    guard let shown = values[name] else { throw CrashContradiction("\(change.json) came before the state") }
    switch change.member("kind").text {
    case "setting":
      let new = change.member("new")
      guard change.member("old") == shown else {
        throw CrashContradiction("\(change.json), where \(shown.json) was shown")
      }
      if CrashObservation.countsUp(name), new.whole != shown.whole.map({ $0 + 1 }) {
        throw CrashContradiction("\(change.json) does not count up by one")
      }
      values[name] = new
    case "insertion":
      values[name] = try inserting(change, shown)
    case "removal":
      values[name] = try removing(change, shown)
    default:
      throw CrashContradiction("a change of no known kind: \(change.json)")
    }
  }

  private func inserting(_ change: Value, _ shown: Value) throws(CrashContradiction) -> Value {
    var members = shown.elements ?? []
    let new = change.member("new").elements ?? []
    let indexes = (change.member("indexes").elements ?? []).compactMap(\.whole)
    guard !indexes.isEmpty, indexes.count == new.count else { throw CrashContradiction("indexes of \(change.json)") }
    for (index, member) in zip(indexes, new) {
      guard (0...members.count).contains(Int(index)), !members.contains(member) else {
        throw CrashContradiction("\(change.json), where \(shown.json) was shown")
      }
      members.insert(member, at: Int(index))
    }
    return .array(members)
  }

  private func removing(_ change: Value, _ shown: Value) throws(CrashContradiction) -> Value {
    var members = shown.elements ?? []
    let old = change.member("old").elements ?? []
    let indexes = (change.member("indexes").elements ?? []).compactMap(\.whole)
    guard !indexes.isEmpty, indexes.count == old.count else { throw CrashContradiction("indexes of \(change.json)") }
    for (index, member) in zip(indexes, old).reversed() {
      guard members.indices.contains(Int(index)), members[Int(index)] == member else {
        throw CrashContradiction("\(change.json), where \(shown.json) was shown")
      }
      members.remove(at: Int(index))
    }
    return .array(members)
  }

  /// Both halves, where both are shown, make the same together: no event tells half a transaction.
  private func checkSum() throws(CrashContradiction) {
    let halves = values.filter { $0.key.hasPrefix("Half/") && $0.key.hasSuffix(" value") }.compactMap(\.value.whole)
    guard halves.count == 2, halves.reduce(0, +) != CrashWorld.sum else { return }
    throw CrashContradiction("the halves are \(halves)")
  }

  /// Where this is another than the present state; nil where it shows that.
  func difference(from world: CrashWorld, _ observation: CrashObservation) -> String? {
    let expected = observation.values(of: world)
    for (name, value) in expected.sorted(by: { $0.key < $1.key }) where values[name] != value {
      return "\(name) is shown as \(values[name]?.json ?? "nothing") and is \(value.json)"
    }
    guard observation.hasItems else { return nil }
    let rows = items.rows.map { row in
      CrashWorld.Member(reference: row.reference.description, number: row.value["number"]?.whole ?? -1)
    }
    return rows == world.items.reversed() ? nil : "the rows are \(rows) and should be \(world.items.reversed() as [_])"
  }
}
