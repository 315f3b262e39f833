import Dispatch
import HTTPServer
import KeyValueModel
import KeyValueObserving
import Logging
import Store
import Support
import TestKit
import Testing

@testable import KeywayServer

/// Changes of a stream's cells between the first event that it misses and the moment at which the registry learns of
/// that.
@Suite("A stream with cells that lags before the registry knows")
struct LagWindowTests {
  private let registry: StreamRegistry
  private let store: Store

  init() throws { try self.init(changesPerObserver: StoreLimits().changesPerObserver) }

  private init(changesPerObserver: Int) throws {
    let schema = try Schema(yaml: "entities: {A: {keys: {x: {type: integer}}}}")
    let hub = StreamHub(limits: ServerLimits(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    registry = StreamRegistry(hub: hub, epoch: "test", limits: StreamLimits()) { 7 }
    var limits = StoreLimits()
    limits.changesPerObserver = changesPerObserver
    store = Store(schema: schema, epoch: "test", limits: limits, publisher: registry)
  }

  @discardableResult
  private func commit(_ operations: KeyValueModel.Operation...) throws -> Revision {
    let done = DispatchSemaphore(value: 0)
    let isTaken = store.submit(Transaction(operations)) { outcome, _, _ in
      if case .failure(let error) = outcome { Issue.record(error) }
      done.signal()
    }
    #expect(isTaken)
    done.wait()
    return store.snapshot.revision
  }

  private func reference(_ text: String) throws -> Reference { try #require(Reference(text)) }

  private func create(_ text: String) throws {
    try commit(.create(try reference(text), ["x": .integer(1)]))
  }

  private func set(_ text: String, _ value: Int64) throws -> Revision {
    try commit(.set(try reference(text), keyPath: "x", .integer(value)))
  }

  /// Opens a stream with cells of these objects. Returns its id and its name.
  private func open(_ cells: [String: String]) throws -> (StreamID, String) {
    let bindings = cells.mapValues { Value.object(["object": .string($0)]) }
    let stream = try CellStreams(registry).open(bindings, cursor: nil, overflow: .coalesce, in: store)
    return (stream.id, registry.services.names.text(of: stream.id))
  }

  private func beginLag(_ id: StreamID) { store.withPublication { registry.beginLag(id, $0) } }

  private func patch(_ cell: String, _ name: String, _ body: JSONObject) throws {
    _ = try CellStreams(registry).patch(cell, in: name, .object(body), store)
  }

  /// Returns the events that the stream receives when it reads again.
  private func caughtUp() -> [String] {
    store.withPublication { publication in
      registry.contents.withLock { contents in
        guard let stream = contents.subscriptions.values.first as? CellStream else { return [] }
        let update = stream.cells.catchUp(to: DeliveredState(present: publication), registry.services.encoder)
        return update.initial.map { "initial \($0.cell ?? "") \($0.new?.json ?? "")" }
          + update.coalesced.map { "\($0.cell ?? "") \($0.new?.json ?? "") \($0.coalesced ?? 0)" }
          + update.gone.map { "\($0.cell ?? "") gone" }
      }
    }
  }

  @Test("The missed events are known from the first one on")
  func counted() throws {
    for object in ["A/1", "A/2"] { try create(object) }
    let (id, _) = try open(["a": "A/1", "b": "A/2"])
    _ = try set("A/1", 2)
    let missed = try set("A/1", 3)
    _ = try set("A/1", 4)
    registry.reportLag(id, firstMissed: StreamPosition.commit(missed).rawValue)
    _ = try set("A/1", 5)
    beginLag(id)
    _ = try set("A/2", 6)
    #expect(caughtUp() == ["a 5 3", "b 6 1"])
  }

  @Test("After a commit that did more than an event may hold, every cell on screen receives its state anew")
  func overflowed() throws {
    let world = try LagWindowTests(changesPerObserver: 1)
    for object in ["A/1", "A/2"] { try world.create(object) }
    let (id, _) = try world.open(["a": "A/1", "b": "A/2"])
    let object = try reference("A/1")
    let missed = try world.commit(
      .set(object, keyPath: "x", .integer(2)), .set(object, keyPath: "x", .integer(3)))
    world.registry.reportLag(id, firstMissed: StreamPosition.commit(missed).rawValue)
    world.beginLag(id)
    #expect(world.caughtUp() == ["initial a 3", "initial b 1"])
  }

  @Test("A cell whose object is deleted is told so")
  func lost() throws {
    for object in ["A/1", "A/2"] { try create(object) }
    let (id, _) = try open(["a": "A/1", "b": "A/2"])
    let missed = try set("A/1", 2)
    registry.reportLag(id, firstMissed: StreamPosition.commit(missed).rawValue)
    try commit(.delete(try reference("A/2")))
    beginLag(id)
    #expect(caughtUp() == ["a 2 1", "b gone"])
  }

  @Test("A cell that goes off screen is told everything anew when it comes back")
  func hidden() throws {
    try create("A/1")
    let (id, name) = try open(["a": "A/1"])
    let missed = try set("A/1", 2)
    registry.reportLag(id, firstMissed: StreamPosition.commit(missed).rawValue)
    try patch("a", name, ["visible": .bool(false)])
    beginLag(id)
    #expect(caughtUp() == [])
    // It lags again, so that the cell's events can be seen.
    registry.reportLag(id, firstMissed: StreamPosition.commit(try set("A/1", 3)).rawValue)
    beginLag(id)
    try patch("a", name, ["visible": .bool(true)])
    #expect(caughtUp() == ["initial a 3"])
  }

  @Test("A stream that misses the first state of a cell has received the commit before it")
  func newsMissed() throws {
    for object in ["A/1", "A/2"] { try create(object) }
    let (id, name) = try open(["a": "A/1", "b": "A/1"])
    let told = try set("A/1", 2)
    try patch("b", name, ["object": .string("A/2")])
    registry.reportLag(id, firstMissed: StreamPosition.state(at: told).rawValue)
    beginLag(id)
    #expect(caughtUp() == ["initial b 1"])
  }

  @Test("Missing the first state in an empty store does no harm")
  func emptyStore() throws {
    let (id, _) = try open([:])
    registry.reportLag(id, firstMissed: StreamPosition.state(at: 0).rawValue)
    try create("A/1")
    beginLag(id)
    #expect(caughtUp() == [])
  }
}

@Suite("Lagging subscribers of a topic")
struct LaggingSubscribersTests {
  @Test("Each has missed what came since it began to lag, whichever others come and go")
  func random() {
    var random = SplitMix64(seed: seed)
    var members = LaggingSubscribers()
    var expected: [StreamID: Int] = [:]
    for _ in 0..<5_000 {
      let id = StreamID(UInt64.random(in: 1...12, using: &random))
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        members.absorb([])
        for id in expected.keys { expected[id, default: 0] += 1 }
      case 2:
        members.remove(id)
        expected[id] = nil
      default:
        guard expected[id] == nil else { continue }
        members.add(id, missed: MissedChanges(since: DeliveredValues()))
        expected[id] = 0
      }
      #expect(members.segmentCount <= expected.count, "seed \(seed)")
      for id in 1...12 {
        let id = StreamID(UInt64(id))
        #expect(members.missed(by: id)?.commits == expected[id], "seed \(seed)")
      }
    }
  }
}
