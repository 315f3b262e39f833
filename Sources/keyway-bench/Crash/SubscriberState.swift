import KeyValueModel
import KeywayClient
import TestKit

/// What a subscriber has received: a value that every event changes, and that every event has to fit.
struct SubscriberState: Sendable {
  /// The values of the observed key paths, by `Object/id keyPath`.
  private(set) var values: [String: Value] = [:]
  /// The rows of the live query.
  private(set) var items = LiveList()

  /// Applies all events of one commit, or the state.
  mutating func apply(_ group: [ReceivedEvent]) throws(BrokenPromise) {
    for received in group {
      switch received.event.event {
      case "change":
        for change in received.changes { try apply(change, isInitial: received.isInitial) }
      case "results", "content":
        do throws(LiveListError) {
          try items.apply(received.event)
        } catch {
          throw BrokenPromise(error.description)
        }
      default:
        throw BrokenPromise("unexpected: \(received.event.event) \(received.event.data)")
      }
    }
    try checkSum()
  }

  private mutating func apply(_ change: Value, isInitial: Bool) throws(BrokenPromise) {
    let name = "\(change["object"].text ?? "?") \(change["keyPath"].text ?? "?")"
    if isInitial {
      values[name] = change["new"]
      return
    }
    guard let shown = values[name] else { throw BrokenPromise("\(change.json) came before the state") }
    switch change["kind"].text {
    case "setting":
      let new = change["new"]
      guard change["old"] == shown else {
        throw BrokenPromise("\(change.json), where \(shown.json) was shown")
      }
      if CrashSubscription.countsUp(name), new.whole != shown.whole.map({ $0 + 1 }) {
        throw BrokenPromise("\(change.json) does not count up by one")
      }
      values[name] = new
    case "insertion", "removal":
      values[name] = try members(of: shown, after: change, isInsertion: change["kind"].text == "insertion")
    default:
      throw BrokenPromise("a change of no known kind: \(change.json)")
    }
  }

  /// A list after members came or went.
  private func members(of shown: Value, after change: Value, isInsertion: Bool) throws(BrokenPromise) -> Value {
    var members = shown.items
    let concerned = change[isInsertion ? "new" : "old"].items
    let indexes = change["indexes"].items.compactMap(\.whole)
    guard !indexes.isEmpty, indexes.count == concerned.count else { throw BrokenPromise("indexes of \(change.json)") }
    let places = Array(zip(indexes, concerned))
    for (index, member) in isInsertion ? places : places.reversed() {
      let fits =
        isInsertion
        ? (0...members.count).contains(index) && !members.contains(member)
        : members.indices.contains(index) && members[index] == member
      guard fits else { throw BrokenPromise("\(change.json), where \(shown.json) was shown") }
      if isInsertion { members.insert(member, at: index) } else { members.remove(at: index) }
    }
    return .array(members)
  }

  /// Both halves, where both are shown, make the same together: no event shows half a transaction.
  private func checkSum() throws(BrokenPromise) {
    let halves = values.filter { $0.key.hasPrefix("Half/") && $0.key.hasSuffix(" value") }.compactMap(\.value.whole)
    guard halves.count == 2, halves.reduce(0, +) != WriterObjects.sum else { return }
    throw BrokenPromise("the halves are \(halves)")
  }

  /// Where this is another than the present state; nil where it shows that.
  func difference(from objects: WriterObjects, _ observation: CrashSubscription) -> String? {
    let expected = observation.values(of: objects)
    for (name, value) in expected.sorted(by: { $0.key < $1.key }) where values[name] != value {
      return "\(name) is shown as \(values[name]?.json ?? "nothing") and is \(value.json)"
    }
    guard observation.hasItems else { return nil }
    let rows = items.rows.map { row in
      WriterObjects.Member(reference: row.reference.description, number: row.value["number"]?.whole ?? -1)
    }
    return rows == objects.items.reversed()
      ? nil : "the rows are \(rows) and should be \(objects.items.reversed() as [_])"
  }
}
