import Dispatch
import HTTPServer
import KeyValueModel
import KeyValueObserving
import Logging
import Store
import Support
import Testing

@testable import KeywayServer

@Suite("The memory of what streams observe")
struct CellMemoryTests {
  private let ledger = MemoryLedger(limit: .max, clientLimit: 100_000)
  private let registry: StreamRegistry
  private let store: Store
  private let greedy = ClientAddress(number: 1)
  private let modest = ClientAddress(number: 2)

  init() throws {
    let hub = StreamHub(
      limits: ServerLimits(), ledger: ledger, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    registry = StreamRegistry(hub: hub, ledger: ledger, epoch: "test", limits: StreamLimits()) { 7 }
    let schema = try Schema(yaml: "entities: {A: {keys: {x: {type: string}}}}")
    store = Store(schema: schema, epoch: "test", limits: StoreLimits(), publisher: registry)
    try commit(.create(try reference(), ["x": .string("one")]))
  }

  private func reference() throws -> Reference { try #require(Reference("A/1")) }

  private func commit(_ operation: KeyValueModel.Operation) throws {
    let done = DispatchSemaphore(value: 0)
    _ = store.submit(Transaction([operation])) { outcome, _, _ in
      if case .failure(let error) = outcome { Issue.record(error) }
      done.signal()
    }
    done.wait()
  }

  private func bindings(_ count: Int, options: [String] = ["new"]) -> [String: Value] {
    var bindings: [String: Value] = [:]
    for number in 0..<count {
      bindings["c\(number)"] = .object(["object": .string("A/1"), "options": .array(options.map(Value.string))])
    }
    return bindings
  }

  private func open(_ count: Int, _ client: ClientAddress, options: [String] = ["new"]) throws -> EventStream {
    try CellStreams(registry).open(
      bindings(count, options: options), cursor: nil, overflow: .coalesce, for: client, in: store)
  }

  private func end(_ stream: EventStream) { store.withPublication { registry.streamEnded(stream.id, nil, &$0) } }

  private func refusal(_ body: () throws -> Void) -> ProblemCode? {
    do {
      try body()
      return nil
    } catch { return (error as? Problem)?.code }
  }

  @Test("A client whose cells take up its share is refused more, another is not, and all comes back")
  func cells() throws {
    let first = try open(50, greedy)
    let held = ledger.bytes(of: greedy)
    #expect(held > 50 * 1_000)
    #expect(refusal { _ = try open(50, greedy) } == .overloaded)
    let name = registry.services.names.text(of: first.id)
    #expect(refusal { _ = try CellStreams(registry).bindAll(bindings(90), in: name, store) } == .overloaded)
    #expect(ledger.bytes(of: greedy) == held && registry.counts.cells == 50)
    let other = try open(50, modest)
    _ = try CellStreams(registry).bindAll(bindings(10), in: name, store)
    #expect(ledger.bytes(of: greedy) < held / 4)
    for stream in [first, other] { end(stream) }
    #expect(ledger.total == 0 && registry.counts.cells == 0)
  }

  @Test("A cut stream counts in its client's share, and is not kept where there is no room")
  func cutStreams() throws {
    func cut(_ stream: EventStream) {
      store.withPublication { registry.streamEnded(stream.id, StreamCut(isDelivered: true), &$0) }
    }
    let first = try open(1, greedy)
    let second = try open(1, greedy)
    #expect(ledger.bytes(of: greedy) == 0)
    let rest = try ledger.reserve(99_000, for: greedy, .streams)
    cut(first)
    #expect(registry.contents.withLock { $0.cut.count } == 0)
    try rest.resize(to: 0)
    cut(second)
    #expect(registry.contents.withLock { $0.cut.count } == 1)
    #expect(ledger.bytes(of: greedy) > StreamWeight.cut && ledger.bytes(of: greedy) < 10_000)
    #expect(registry.counts.streams == 0 && registry.counts.cells == 0)
    try registry.endStream(registry.services.names.text(of: second.id))
    #expect(ledger.total == 0)
  }

  @Test("Cells that would have to remember more than their client's share are told everything anew")
  func remembered() throws {
    let long = String(repeating: "x", count: 120_000)
    try commit(.set(try reference(), keyPath: "x", .string(long)))
    let stream = try open(1, greedy, options: ["new", "old"])
    try commit(.set(try reference(), keyPath: "x", .string("two")))
    let position = StreamPosition.commit(store.snapshot.revision).rawValue
    registry.reportLag(stream.id, firstMissed: position)
    store.withPublication { registry.beginLag(stream.id, $0) }
    #expect(ledger.bytes(of: greedy) < 100_000)
    let told = store.withPublication { publication in
      registry.contents.withLock { contents -> [String] in
        guard let cells = contents.subscriptions.values.first as? CellStream else { return [] }
        let update = cells.cells.catchUp(to: DeliveredState(present: publication), registry.services.encoder)
        return update.initial.map { "initial \($0.new?.json ?? "")" } + update.coalesced.map { _ in "merged" }
      }
    }
    #expect(told == [#"initial "two""#])
    end(stream)
    #expect(ledger.total == 0)
  }
}
