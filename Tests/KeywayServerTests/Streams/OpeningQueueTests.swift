import Dispatch
import HTTPServer
import HTTPTypes
import KeyValueModel
import Logging
import Store
import Support
import TestKit
import Testing

@testable import KeywayServer

@Suite("Streams that wait to be opened", .timeLimit(.minutes(60)))
struct OpeningQueueTests {
  @Test("While one client's costly openings are held up, another client's stream is opened")
  func fairness() throws {
    let world = try OpeningWorld { _ in }
    // As many as there are threads, and more that wait.
    let slow = try world.fill(6)
    let quick = try world.client(from: "127.0.0.2").stream("/quick")
    #expect(quick.head.status == 200)
    #expect(world.gate.passed == 0)
    world.gate.open()
    for socket in slow { #expect(try WireReader(socket).head(before: Deadline()).status == 200) }
  }

  @Test("One client that fills its share of the waiting places hears 503; another is served")
  func shares() throws {
    let world = try OpeningWorld {
      $0.opening = 4
      $0.openingPerAddress = 2
    }
    // One is being opened, and two wait.
    let slow = try world.fill(3)
    let refused = try world.client(from: "127.0.0.1").send("GET", "/slow")
    #expect(refused.status == 503 && refused.problem == "overloaded" && refused["Retry-After"] != nil)
    let quick = try world.client(from: "127.0.0.2").stream("/quick")
    #expect(quick.head.status == 200)
    world.gate.open()
    for socket in slow { #expect(try WireReader(socket).head(before: Deadline()).status == 200) }
  }

  @Test("A client that waits and leaves makes room while others are still held up")
  func left() throws {
    let world = try OpeningWorld { $0.openingPerAddress = 1 }
    let slow = try world.fill(2)
    slow[1].close()
    // Until the server notices that it has left, another one is refused.
    #expect(
      Deadline().awaits {
        let socket = try? world.begin("/slow", from: "127.0.0.1")
        return socket.flatMap { try? WireReader($0).head(before: Deadline(seconds: 0.2)) } == nil
      })
    world.gate.open()
    #expect(try WireReader(slow[0]).head(before: Deadline()).status == 200)
  }
}

/// A server with two streams: `/slow` opens when a gate does, `/quick` at once.
private final class OpeningWorld {
  let gate = Gate()
  let queue: OpeningQueue
  private let hub: StreamHub
  private let server: Server
  private let store: Store

  init(_ change: (inout StreamLimits) -> Void) throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let hub = StreamHub(limits: ServerLimits(), logger: logger)
    self.hub = hub
    var limits = StreamLimits()
    change(&limits)
    let registry = StreamRegistry(hub: hub, epoch: "test", limits: limits) { 7 }
    store = Store(
      schema: try Schema(yaml: "entities: {A: {keys: {x: {type: integer}}}}"), epoch: "test", limits: StoreLimits(),
      publisher: registry)
    try hub.start(
      delegate: StreamMonitor(
        store: store, streams: registry, metrics: PrometheusRegistry(), conditions: ConditionLog(logger: logger),
        logger: logger))
    queue = OpeningQueue(label: "test", limits: limits, readiness: Readiness(of: store))
    let handler = Handler { [gate, queue] client, target in
      queue.response(to: client) { _ throws(Problem) in
        if target == "/slow" { gate.pass() }
        var prelude = registry.services.prelude()
        prelude.append(EventEncoder.emptyBlock)
        return try registry.services.open(
          for: client, prelude: prelude, channel: nil, overflow: .coalesce)
      }
    }
    var server = ServerLimits()
    server.threads = 3
    self.server = try Server(
      socket: ListeningSocket(host: "127.0.0.1", port: 0), limits: server,
      ledger: MemoryLedger(limit: .max, clientLimit: .max), hub: hub, handler: handler, logger: logger)
  }

  deinit {
    gate.open()
    hub.drain(until: .now + .seconds(5))
    server.stop(until: .now + .seconds(5))
    hub.stop()
  }

  func client(from source: String) -> WireClient { WireClient(port: server.port, from: source, keepingAlive: self) }

  /// Sends a request without waiting for its response.
  func begin(_ target: String, from source: String) throws -> WireSocket {
    let socket = try WireSocket(SocketAddress(port: server.port, from: source))
    try socket.send("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
    return socket
  }

  /// Begins so many openings of one client: the first is held up, the others wait behind it.
  func fill(_ count: Int) throws -> [WireSocket] {
    let first = try begin("/slow", from: "127.0.0.1")
    gate.awaitArrival()
    let sockets = [first] + (try (1..<count).map { _ in try begin("/slow", from: "127.0.0.1") })
    #expect(Deadline().awaits { queue.count == count })
    return sockets
  }

  private struct Handler: RequestHandler {
    let answer: @Sendable (ClientAddress, String) -> HandlerResponse

    func handle(_ request: borrowing Request) -> HandlerResponse { answer(request.client, request.target) }

    func response(to fault: RequestFault) -> Response { Response(status: .serviceUnavailable) }

    func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?) {}
  }
}

/// A gate that blocks all threads until it is opened, which is final.
private final class Gate: Sendable {
  private let arrivals = DispatchSemaphore(value: 0)
  private let doors = DispatchSemaphore(value: 0)
  private let count = Locked(0)

  /// The number of threads that have passed.
  var passed: Int { count.withLock { $0 } }

  func pass() {
    arrivals.signal()
    doors.wait()
    doors.signal()
    count.withLock { $0 += 1 }
  }

  /// Waits until a thread has arrived.
  func awaitArrival() { arrivals.wait() }

  func open() { doors.signal() }
}
