import Foundation
import KeyValueModel
import KeywayClient
import Support
import TestKit

/// One subscriber: it reconnects with its last id after every interruption, and checks every event.
final class CrashSubscriber: Sendable {
  private struct State {
    var received = SubscriberState()
    /// The last id received, which names the received state.
    var cursor: Cursor?
    /// True if the state may arrive: at the beginning, and after a reset.
    var awaitsState = true
    var isStopped = false
    var isRunning = false
  }

  private let subscription: CrashSubscription
  /// The subscriber's name in messages.
  let name: String
  /// The objects of the writer at the beginning.
  private let objects: WriterObjects
  private let ledger: PromiseLedger
  private let state = Locked(State())

  /// Creates a subscriber to the objects of one writer.
  init(_ subscription: CrashSubscription, of objects: WriterObjects, ledger: PromiseLedger) {
    self.subscription = subscription
    self.objects = objects
    self.ledger = ledger
    name = "subscriber of \(subscription) of \(objects.name)"
  }

  /// The number of the writer of the observed objects.
  var writer: Int { objects.writer }

  /// True while its thread runs.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Returns a difference between the received state and the present one; nil if there is none.
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
          // The server is recovering, draining or gone.
          if error.isOfBrokenServer { ledger.violation("\(name): \(error)") }
        } catch {
          // Any result after this would be meaningless.
          ledger.violation("\(name): \(error)")
          break
        }
        usleep(3000)
      }
      state.withLock { $0.isRunning = false }
    }
  }

  /// Makes the thread end when its connection ends.
  func stop() { state.withLock { $0.isStopped = true } }

  private func subscribe(port: UInt16) throws {
    let request = subscription.request(objects)
    let headers = state.withLock { $0.cursor.map { ["Last-Event-ID": $0.description] } } ?? [:]
    let stream = try WireClient(port: port).stream(request.target, headers, method: request.method, body: request.body)
    // The events of an incomplete commit: only the last has the id. They are sent again if the connection is cut before
    // that.
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

  /// Parses an id, and notes it.
  private func cursor(_ id: String) throws(BrokenPromise) -> Cursor {
    guard let cursor = Cursor(id) else { throw BrokenPromise("the id \(id) is not a cursor") }
    ledger.noteEvent(cursor, of: name)
    return cursor
  }

  /// Checks a reset, which is right only if the history does not reach back to the cursor.
  private func reset(_ event: WireEvent, port: UInt16) throws(BrokenPromise) {
    let cursor = state.withLock { state in
      state.awaitsState = true
      return state.cursor
    }
    guard event.json["reason"].text == "compacted", let cursor else {
      throw BrokenPromise("a reset where the last id was \(Self.text(cursor)): \(event.text)")
    }
    ledger.noteReset()
    // Queried after the reset, since the oldest cursor only increases. A server that is gone meanwhile cannot be
    // queried.
    guard let status = try? WireClient(port: port).json("/v1/status"),
      let oldest = status["oldest"].text.flatMap(Cursor.init)
    else { return }
    guard cursor.revision < oldest.revision else {
      throw BrokenPromise("a reset where the last id was \(cursor) and the history begins at \(oldest)")
    }
  }

  private static func text(_ cursor: Cursor?) -> String { cursor?.description ?? "none" }
}

/// The part of one writer's objects that one subscriber observes.
enum CrashSubscription: Hashable, Sendable, CaseIterable {
  /// A key path that increases by one.
  case counter
  /// A whole object, with its display keys.
  case object
  /// A computed key over a to-many relationship, and an aggregate.
  case aggregate
  /// An ordered to-many relationship, with its count.
  case list
  /// A live query.
  case query
  /// A stream with cells: both halves, a counter, a live query.
  case cells

  private static let options = "options=initial,old,new"

  /// Returns the request that opens its stream.
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

  /// Returns the values of the observed key paths in a state: `Counter/0-0 value`.
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

  /// True if the stream shows items.
  fileprivate var hasItems: Bool { self == .query || self == .cells }

  /// Returns true if each new value of a key path is the old one plus one, so that none can be missing unnoticed.
  fileprivate static func countsUp(_ name: String) -> Bool {
    !(name.hasPrefix("Half/") && name.hasSuffix(" value")) && !name.hasPrefix("List/")
  }
}

/// The state that a subscriber has received: a value that every event changes, and must fit.
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
        throw BrokenPromise("\(change.json) does not increase by one")
      }
      values[name] = new
    case "insertion", "removal":
      values[name] = try members(of: shown, after: change, isInsertion: change["kind"].text == "insertion")
    default:
      throw BrokenPromise("a change of unknown kind: \(change.json)")
    }
  }

  /// Returns a list after members were inserted or removed.
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

  /// Checks that both halves, if both are shown, have the same sum as always: no event shows half a transaction.
  private func checkSum() throws(BrokenPromise) {
    let halves = values.filter { $0.key.hasPrefix("Half/") && $0.key.hasSuffix(" value") }.compactMap(\.value.whole)
    guard halves.count == 2, halves.reduce(0, +) != WriterObjects.sum else { return }
    throw BrokenPromise("the halves are \(halves)")
  }

  /// Returns a difference from the present state; nil if there is none.
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

/// An event of a stream with parsed data.
private struct ReceivedEvent: Sendable {
  /// The event in the form that a client's list takes.
  let event: ServerSentEvent
  /// The data as JSON.
  let data: Value
  /// The revision of the event.
  let revision: Int

  /// Creates an event of a kind that has a revision; throws if it has none.
  init(_ event: WireEvent) throws(BrokenPromise) {
    self.event = ServerSentEvent(id: event.id ?? "", event: event.name ?? "message", data: event.data ?? "")
    data = event.json
    guard let revision = data["revision"].whole else { throw BrokenPromise("without a revision: \(event.text)") }
    self.revision = revision
  }

  /// True if the event is the state, and not a change.
  var isInitial: Bool { data["initial"] == .bool(true) }

  /// The writer that caused it.
  var writer: String? { data["writer"].text }

  /// The changes of a `change`.
  var changes: [Value] { data["changes"].items }
}
