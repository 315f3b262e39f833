import Foundation
import KeyValueModel
import KeywayClient
import Support
import TestKit

/// One subscriber: after whatever happens it comes back with its last id, and checks every event.
final class CrashSubscriber: Sendable {
  private struct State {
    var received = SubscriberState()
    /// The last id, which names the state that was received.
    var cursor: Cursor?
    /// Whether the state may come: at the beginning, and after a reset.
    var awaitsState = true
    var isStopped = false
    var isRunning = false
  }

  private let subscription: CrashSubscription
  /// For messages.
  let name: String
  /// The objects of the writer as they were at the beginning.
  private let objects: WriterObjects
  private let ledger: PromiseLedger
  private let state = Locked(State())

  /// A subscriber of the objects of one writer.
  init(_ subscription: CrashSubscription, of objects: WriterObjects, ledger: PromiseLedger) {
    self.subscription = subscription
    self.objects = objects
    self.ledger = ledger
    name = "subscriber of \(subscription) of \(objects.name)"
  }

  /// The number of the writer whose objects it observes.
  var writer: Int { objects.writer }

  /// Whether its thread runs.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Where what it has received is another than the present state.
  func difference(from objects: WriterObjects) -> String? {
    state.withLock { $0.received.difference(from: objects, subscription) }
  }

  /// Subscribes on a thread of its own, again and again.
  func start(port: UInt16) {
    state.withLock { $0.isRunning = true }
    Thread.detachNewThread { [self] in
      while !state.withLock({ $0.isStopped }) {
        do {
          try subscribe(port: port)
        } catch let error as LoopbackError {
          // The server recovers, drains or is gone.
          if error.isOfBrokenServer { ledger.violation("\(name): \(error)") }
        } catch {
          // Nothing after this would mean anything.
          ledger.violation("\(name): \(error)")
          break
        }
        usleep(3000)
      }
      state.withLock { $0.isRunning = false }
    }
  }

  /// Ends the thread once its connection ends.
  func stop() { state.withLock { $0.isStopped = true } }

  private func subscribe(port: UInt16) throws {
    let request = subscription.request(objects)
    let headers = state.withLock { $0.cursor.map { ["Last-Event-ID": $0.description] } } ?? [:]
    let stream = try WireClient(port: port).stream(request.target, headers, method: request.method, body: request.body)
    // Events of a commit whose last, which has the id, has not come: they come again where the connection is cut.
    var group: [ReceivedEvent] = []
    while let event = try stream.block(before: Deadline(seconds: CrashPlan.patienceSeconds)) {
      switch event.name {
      case "open", "bye": break
      case nil where event.data == nil: break
      case "heartbeat": try take(heartbeat: event)
      case "reset": try reset(event, port: port)
      default:
        group.append(try ReceivedEvent(event))
        guard let id = event.id else { continue }
        try take(group, id: id)
        group = []
      }
    }
  }

  private func take(_ group: [ReceivedEvent], id: String) throws(BrokenPromise) {
    let cursor = try cursor(id)
    try state.withLock { (state) throws(BrokenPromise) in
      let isInitial = group.contains { $0.isInitial }
      guard isInitial == state.awaitsState else {
        throw BrokenPromise("\(id) is \(isInitial ? "" : "not ")the state; the last id was \(Self.text(state.cursor))")
      }
      if let last = state.cursor, cursor.revision < last.revision || !isInitial && cursor.revision == last.revision {
        throw BrokenPromise("\(id) came after \(last)")
      }
      for received in group {
        guard received.revision == cursor.revision else {
          throw BrokenPromise("\(id) ends what has an event of revision \(received.revision)")
        }
        guard isInitial || received.writer == objects.name else {
          throw BrokenPromise("\(id) was written by \(received.writer ?? "no writer")")
        }
      }
      try state.received.apply(group)
      state.cursor = cursor
      state.awaitsState = false
    }
  }

  private func take(heartbeat event: WireEvent) throws(BrokenPromise) {
    let cursor = try cursor(event.id ?? "")
    try state.withLock { (state) throws(BrokenPromise) in
      if let last = state.cursor, cursor.revision < last.revision {
        throw BrokenPromise("heartbeat \(cursor) came after \(last)")
      }
      state.cursor = cursor
    }
  }

  /// Takes an id apart and notes it.
  private func cursor(_ id: String) throws(BrokenPromise) -> Cursor {
    guard let cursor = Cursor(id) else { throw BrokenPromise("the id \(id) is no cursor") }
    ledger.noteEvent(cursor, of: name)
    return cursor
  }

  /// A reset is right only where the history does not reach back to the cursor.
  private func reset(_ event: WireEvent, port: UInt16) throws(BrokenPromise) {
    let cursor = state.withLock { state in
      state.awaitsState = true
      return state.cursor
    }
    guard event.json["reason"].text == "compacted", let cursor else {
      throw BrokenPromise("a reset where the last id was \(Self.text(cursor)): \(event.text)")
    }
    ledger.noteReset()
    // Asked after the reset: the oldest cursor only grows. A server that is gone meanwhile cannot be asked.
    guard let status = try? WireClient(port: port).json("/v1/status"),
      let oldest = status["oldest"].text.flatMap(Cursor.init)
    else { return }
    guard cursor.revision < oldest.revision else {
      throw BrokenPromise("a reset where the last id was \(cursor) and the history begins at \(oldest)")
    }
  }

  private static func text(_ cursor: Cursor?) -> String { cursor?.description ?? "none" }
}

/// What one subscriber observes of one writer's objects.
enum CrashSubscription: Hashable, Sendable, CaseIterable {
  /// A key path that counts up by one.
  case counter
  /// A whole object, by its display keys.
  case object
  /// A computed key over a to-many, and an aggregate.
  case aggregate
  /// An ordered to-many, with its count.
  case list
  /// A live query.
  case query
  /// A stream with cells: both halves, a counter, a live query.
  case cells

  private static let options = "options=initial,old,new"

  /// The request that opens its stream.
  fileprivate func request(_ objects: WriterObjects) -> WireRequest {
    self == .cells
      ? WireRequest("POST", path(objects), body: cells(objects)) : WireRequest("GET", path(objects))
  }

  private func path(_ objects: WriterObjects) -> String {
    switch self {
    case .counter: "/v1/objects/\(objects.counter(0))/value?\(Self.options)"
    case .object: "/v1/objects/\(objects.leftHalf)?\(Self.options)"
    case .aggregate: "/v1/objects/\(objects.group)/total,counters.@sum.value?\(Self.options)"
    case .list: "/v1/objects/\(objects.list)/entries,entries.@count?\(Self.options)"
    case .query: "/v1/objects/Item?filter=writer==\(objects.writer)&sort=-number&keys=number"
    case .cells: "/v1/streams"
    }
  }

  private func cells(_ objects: WriterObjects) -> String {
    let options = #""options":["initial","old","new"]"#
    return """
      {"cells":{"left":{"object":"\(objects.leftHalf)",\(options)},\
      "right":{"object":"\(objects.rightHalf)",\(options)},\
      "counter":{"object":"\(objects.counter(1))","keyPaths":["value"],\(options)},\
      "items":{"entity":"Item","filter":"writer == \(objects.writer)","sort":"-number","keys":["number"]}}}
      """
  }

  /// What the observed key paths show of a state: `Counter/0-0 value`.
  fileprivate func values(of objects: WriterObjects) -> [String: Value] {
    switch self {
    case .counter: ["\(objects.counter(0)) value": .count(objects.counters[0])]
    case .object: half(objects.leftHalf, objects.left, objects)
    case .aggregate:
      [
        "\(objects.group) total": .count(objects.total),
        "\(objects.group) counters.@sum.value": .count(objects.total),
      ]
    case .list:
      [
        "\(objects.list) entries": .array(objects.entries.map { .string($0.reference ?? "") }),
        "\(objects.list) entries.@count": .count(objects.entries.count),
      ]
    case .query: [:]
    case .cells:
      half(objects.leftHalf, objects.left, objects)
        .merging(half(objects.rightHalf, objects.right, objects)) { first, _ in first }
        .merging(["\(objects.counter(1)) value": .count(objects.counters[1])]) { first, _ in first }
    }
  }

  private func half(_ reference: String, _ value: Int, _ objects: WriterObjects) -> [String: Value] {
    ["\(reference) value": .count(value), "\(reference) sequence": .count(objects.sequence)]
  }

  /// Whether items are shown.
  fileprivate var hasItems: Bool { self == .query || self == .cells }

  /// Whether each new value of a key path is the old and one: then none can be missing.
  fileprivate static func countsUp(_ name: String) -> Bool {
    !(name.hasPrefix("Half/") && name.hasSuffix(" value")) && !name.hasPrefix("List/")
  }
}

/// What a subscriber has received: a value that every event changes, and that every event has to fit.
private struct SubscriberState: Sendable {
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

/// An event of a stream with its data taken apart.
private struct ReceivedEvent: Sendable {
  /// The event as a client's list takes it.
  let event: ServerSentEvent
  /// The data as JSON.
  let data: Value
  /// The revision that the event is of.
  let revision: Int

  /// An event of a kind that has a revision; throws where it has none.
  init(_ event: WireEvent) throws(BrokenPromise) {
    self.event = ServerSentEvent(id: event.id ?? "", event: event.name ?? "message", data: event.data ?? "")
    data = event.json
    guard let revision = data["revision"].whole else { throw BrokenPromise("without a revision: \(event.text)") }
    self.revision = revision
  }

  /// Whether it is the state, and not what changed it.
  var isInitial: Bool { data["initial"] == .bool(true) }

  /// The writer that caused it.
  var writer: String? { data["writer"].text }

  /// The changes of a `change`.
  var changes: [Value] { data["changes"].items }
}
