import HTTPTypes
import Logging
import Support

@testable import HTTPServer

/// A server and its hub on a free port of the loopback interface, for the time of one test.
final class TestServer: Sendable {
  let hub: StreamHub
  let server: Server
  let listener = HubListener()

  init(
    host: String = "127.0.0.1", limits: ServerLimits = .with { _ in },
    ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max),
    answer: @escaping @Sendable (borrowing Request, StreamHub) throws -> HandlerResponse = { _, _ in
      .response(Response(status: .ok))
    }
  ) throws {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    hub = StreamHub(limits: limits, ledger: ledger, logger: logger)
    try hub.start(delegate: listener)
    server = try Server(
      socket: ListeningSocket(host: host, port: 0), limits: limits, ledger: ledger, hub: hub,
      handler: TestHandler(hub: hub, answer: answer), logger: logger)
  }

  deinit {
    hub.drain(until: .now + .seconds(5))
    server.stop(until: .now + .seconds(5))
    hub.stop()
  }

  func client() throws -> TestClient { try TestClient(port: server.port) }

  /// Makes a server whose `/` is a stream in channel 1 with the given prelude, and whose `/own` is a stream without a
  /// channel.
  static func streaming(
    prelude: String = "retry: 1\n\n", overflow: OverflowPolicy = .coalesce,
    _ change: (inout ServerLimits) -> Void = { _ in }
  ) throws -> TestServer {
    try TestServer(limits: .with(change)) { request, hub in
      let channel = request.target == "/own" ? nil : ChannelID(1)
      let stream = try hub.open(prelude: EventBytes(Array(prelude.utf8)), channel: channel, overflow: overflow)
      return .stream(stream, fields: [.contentType: "text/event-stream"])
    }
  }

  func post(_ payloads: String..., position: UInt64? = nil) {
    hub.post(payloads.map { .channel(ChannelID(1), EventBytes(Array($0.utf8))) }, position: position)
  }
}

extension ServerLimits {
  /// Makes limits with three threads for requests and two for streams, whatever the machine, and the test's changes.
  static func with(_ change: (inout ServerLimits) -> Void) -> ServerLimits {
    var limits = ServerLimits()
    limits.threads = 3
    change(&limits)
    return limits
  }
}

struct TestHandler: RequestHandler {
  let hub: StreamHub
  let answer: @Sendable (borrowing Request, StreamHub) throws -> HandlerResponse

  func handle(_ request: borrowing Request) -> HandlerResponse {
    do {
      return try answer(request, hub)
    } catch {
      return .response(Response(status: .serviceUnavailable, body: Array("\(error)".utf8)))
    }
  }

  func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?) {}

  func response(to fault: RequestFault) -> Response {
    let status: HTTPResponse.Status =
      switch fault {
      case .bodyTooLarge: .contentTooLarge
      case .overloaded, .memoryRefused, .draining: .serviceUnavailable
      case .unanswered: .internalServerError
      case .malformed, .headersTooLarge, .targetTooLong: .badRequest
      case .unsupportedVersion: .httpVersionNotSupported
      case .unsupportedTransferCoding: .notImplemented
      case .encodedBody: .unsupportedMediaType
      }
    return Response(status: status, body: Array("\(fault)".utf8))
  }
}

/// A delegate that records the ends of streams and those that lag, and lets a test wait for them.
final class HubListener: StreamHubDelegate {
  struct End: Equatable, Sendable {
    let id: StreamID
    let end: StreamEnd
  }

  struct Miss: Equatable, Sendable {
    let id: StreamID
    let first: UInt64
  }

  let ends: AsyncStream<End>
  private let told: AsyncStream<End>.Continuation
  private let all = Locked([End]())
  private let allMisses = Locked([Miss]())
  private let allQuestions = Locked([StreamID]())
  /// The test's actions, called on the hub thread.
  private let onEnd = Locked<KeptAction<StreamID, Void>?>(nil)
  private let onMiss = Locked<KeptAction<Miss, Void>?>(nil)
  private let onQuestion = Locked<KeptAction<StreamID, Void>?>(nil)

  init() {
    (ends, told) = AsyncStream.makeStream()
  }

  var history: [End] { all.withLock { $0 } }

  /// Every stream that began to lag, with the first position that it missed.
  var misses: [Miss] { allMisses.withLock { $0 } }

  /// Every request for a catch-up.
  var questions: [StreamID] { allQuestions.withLock { $0 } }

  func whenEnded(_ body: @escaping @Sendable (StreamID) -> Void) { onEnd.withLock { $0 = KeptAction(body) } }

  func whenLagging(_ body: @escaping @Sendable (Miss) -> Void) { onMiss.withLock { $0 = KeptAction(body) } }

  func whenCaughtUp(_ body: @escaping @Sendable (StreamID) -> Void) { onQuestion.withLock { $0 = KeptAction(body) } }

  func heartbeat(at position: UInt64) -> EventBytes { EventBytes(Array("event: heartbeat\nid: \(position)\n\n".utf8)) }

  func closingEvent(_ reason: StreamEnd) -> EventBytes { EventBytes(Array("event: bye\ndata: \(reason)\n\n".utf8)) }

  func streamLagged(_ id: StreamID, firstMissed position: UInt64) {
    let miss = Miss(id: id, first: position)
    allMisses.withLock { $0.append(miss) }
    onMiss.withLock { $0 }?(miss)
  }

  func streamCaughtUp(_ id: StreamID) {
    allQuestions.withLock { $0.append(id) }
    onQuestion.withLock { $0 }?(id)
  }

  func streamEnded(_ id: StreamID, _ end: StreamEnd, isDelivered: Bool) {
    onEnd.withLock { $0 }?(id)
    all.withLock { $0.append(End(id: id, end: end)) }
    told.yield(End(id: id, end: end))
  }

  /// Waits for the next `count` ends.
  func next(_ count: Int) async -> [StreamEnd] {
    var result: [StreamEnd] = []
    var iterator = ends.makeAsyncIterator()
    while result.count < count, let end = await iterator.next() { result.append(end.end) }
    return result
  }
}
