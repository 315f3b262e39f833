import Foundation
import FoundationNetworking
import Support

/// A stream that reconnects, like EventSource in a browser, with the protocol's own rules in addition.
///
/// It connects when the first event is requested, resumes with `Last-Event-ID` after every loss of the connection and
/// every `bye`, and waits between attempts as `ReconnectionPolicy` determines. It ends after 204, and after `gone` if
/// the stream is of a single object; a 4xx other than 429 is thrown as a `Problem`. The events of a commit that was cut
/// off in the middle are repeated after reconnecting, because an id names only commits that were received completely.
///
/// The transfer of the present attempt, its parser and the waiting events are mutable, and guarded by the actor; one
/// consumer at a time.
package actor EventStreamConnection {
  private let client: Client
  private let path: String
  private let endsAfterGone: Bool
  private let notify: @Sendable (EventStreamNotice) -> Void

  private var policy: ReconnectionPolicy
  private var lastEventID: String
  private var transfer: EventStreamTransfer?
  private var parser = EventStreamParser()
  private var waiting: ArraySlice<ServerSentEvent> = []
  private var isFinished = false

  /// The seconds without a byte that count as a lost connection: several of the server's heartbeats.
  private static let silenceSeconds: Double = 60

  /// Creates a stream of `path`.
  package init(
    _ client: Client, path: String, lastEventID: String = "", endsAfterGone: Bool = false,
    policy: ReconnectionPolicy = ReconnectionPolicy(),
    notify: @escaping @Sendable (EventStreamNotice) -> Void = { _ in }
  ) {
    self.client = client
    self.path = path
    self.lastEventID = lastEventID
    self.endsAfterGone = endsAfterGone
    self.policy = policy
    self.notify = notify
  }

  deinit { transfer?.cancel() }

  /// The events in order, produced on demand. One sequence per connection.
  package nonisolated var events: AsyncThrowingStream<ServerSentEvent, any Error> {
    AsyncThrowingStream { try await self.next() }
  }

  /// Returns the next event; nil if the stream is over or the surrounding task is cancelled.
  package func next() async throws -> ServerSentEvent? {
    while !isFinished, !Task.isCancelled {
      if let event = waiting.popFirst() {
        take(event)
        return event
      }
      try await advance()
    }
    close()
    return nil
  }

  /// Ends the stream and its connection.
  package func close() {
    isFinished = true
    transfer?.cancel()
    transfer = nil
    waiting = []
  }

  private func take(_ event: ServerSentEvent) {
    // Behind the last event received so far, blocks without data may have set the id, or reset it.
    lastEventID = waiting.isEmpty ? parser.lastEventID : event.id
    if endsAfterGone, event.event == "gone" { isFinished = true }
  }

  /// Reads one more part of the stream, with a new connection if there is none.
  private func advance() async throws {
    do {
      guard let transfer else { return try await open() }
      guard case .bytes(let bytes)? = try await transfer.next() else {
        return try await reconnect(reason: "the server ended the stream")
      }
      let events = try parser.parse(bytes)
      if let milliseconds = parser.retryMilliseconds { policy.noteRetry(milliseconds: milliseconds) }
      if !events.isEmpty { policy.noteSuccess() }
      waiting = events[...]
      if events.isEmpty { lastEventID = parser.lastEventID }
    } catch ClientError.unreachable(_, let reason) {
      try await reconnect(reason: reason)
    }
  }

  private func open() async throws {
    var headers = ["Accept": "text/event-stream", "Cache-Control": "no-store"]
    if !lastEventID.isEmpty { headers["Last-Event-ID"] = lastEventID }
    var request = try client.urlRequest("GET", path, headers: headers)
    request.timeoutInterval = Self.silenceSeconds
    let transfer = EventStreamTransfer(request, server: client.server.absoluteString)
    self.transfer = transfer
    guard case .response(let response)? = try await transfer.next() else {
      return try await reconnect(reason: "the server closed the connection")
    }
    guard response.status == 200 else { return try await settle(response, of: transfer) }
    let type = response.header("Content-Type") ?? "without a content type"
    guard type.lowercased().hasPrefix("text/event-stream") else {
      throw ClientError.notAnEventStream(path: path, contentType: type)
    }
    parser = EventStreamParser(lastEventID: lastEventID)
    notify(.opened)
  }

  /// Handles a response other than 200.
  private func settle(_ response: ClientResponse, of transfer: EventStreamTransfer) async throws {
    switch EventStreamOutcome(response) {
    case .ended:
      close()
    case .reconnect(let seconds):
      try await reconnect(reason: "the server answered \(response.status)", retryAfterSeconds: seconds)
    case .refused:
      var response = response
      while case .bytes(let bytes)? = try await transfer.next() { response.body += bytes }
      close()
      throw Problem(response)
    }
  }

  private func reconnect(reason: String, retryAfterSeconds: Int? = nil) async throws {
    transfer?.cancel()
    transfer = nil
    guard !Task.isCancelled else { return }
    var generator = SystemRandomNumberGenerator()
    let delay = policy.nextDelayMilliseconds(retryAfterSeconds: retryAfterSeconds, using: &generator)
    notify(.reconnecting(reason: reason, delayMilliseconds: delay))
    // A cancelled sleep is not an error: `next` checks the cancellation itself.
    try? await Task.sleep(for: .milliseconds(delay))
  }
}

/// An event of the connection under a stream, for a caller that reports it.
package enum EventStreamNotice: Hashable, Sendable {
  /// The server has accepted the stream.
  case opened
  /// The connection ended; the next attempt comes after the delay.
  case reconnecting(reason: String, delayMilliseconds: Int)
}

/// The meaning of the end of one attempt at a stream, by the rules of EventSource and the protocol.
package enum EventStreamOutcome: Hashable, Sendable {
  /// The stream is over: the server asks its clients not to reconnect.
  case ended
  /// Reconnecting would not help.
  case refused
  /// Reconnect, at the earliest after the server's `Retry-After`, in seconds.
  case reconnect(retryAfterSeconds: Int?)

  /// Creates the outcome from the status of a response that is not a stream: 204 ends it, 429 and 5xx are temporary,
  /// and every other status is final.
  package init(_ response: ClientResponse) {
    switch response.status {
    case 204: self = .ended
    case 429, 500...599: self = .reconnect(retryAfterSeconds: response.header("Retry-After").flatMap { Int($0) })
    default: self = .refused
    }
  }
}

/// The delays before reconnecting to a stream: exponential backoff with jitter and a cap, beginning with the server's
/// reconnection time.
///
/// A state machine without clock and randomness: the caller sleeps, and provides the random numbers.
package struct ReconnectionPolicy: Hashable, Sendable {
  /// The delay before the first attempt, until the server sends `retry:`.
  package var baseMilliseconds: Int
  /// The maximum delay.
  package var maximumMilliseconds: Int

  private var failures = 0

  /// Creates a policy that starts with `baseMilliseconds`.
  package init(baseMilliseconds: Int = 1000, maximumMilliseconds: Int = 30_000) {
    self.baseMilliseconds = baseMilliseconds
    self.maximumMilliseconds = maximumMilliseconds
  }

  /// Takes over the server's `retry:`.
  package mutating func noteRetry(milliseconds: Int) { baseMilliseconds = milliseconds }

  /// Resets the backoff after an event has come: the next loss of the connection counts as the first again.
  package mutating func noteSuccess() { failures = 0 }

  /// Returns the delay before the next attempt: between half and all of base · 2ⁿ after n failed attempts, and at least
  /// the server's `Retry-After`, but never more than the cap.
  package mutating func nextDelayMilliseconds(
    retryAfterSeconds: Int? = nil, using generator: inout some RandomNumberGenerator
  ) -> Int {
    let factor = 1 << min(failures, 16)
    failures += 1
    let (product, isOverflow) = max(baseMilliseconds, 1).multipliedReportingOverflow(by: factor)
    let full = min(isOverflow ? .max : product, maximumMilliseconds)
    let delay = Int.random(in: (full / 2)...full, using: &generator)
    let asked = min(retryAfterSeconds ?? 0, maximumMilliseconds / 1000 + 1) * 1000
    return min(max(delay, asked), maximumMilliseconds)
  }
}

/// One attempt at a stream: a URL session task whose bytes come as an asynchronous sequence.
///
/// URLSession has no back pressure, so the queue between its thread and the reader is limited to a number of chunks:
/// when it is full, the transfer is cancelled, and the reader, having taken its contents, resumes with its last event
/// id. A slow reader costs a reconnection, never memory.
private final class EventStreamTransfer: NSObject, URLSessionDataDelegate {
  /// An element of a transfer, in this order: one response, then bytes. The sequence ends, or throws a `ClientError`.
  enum Part: Sendable {
    case response(ClientResponse)
    case bytes([UInt8])
  }

  /// The maximum number of waiting chunks; each is at most as large as what libcurl reads at once, 16 KiB.
  private static let maximumWaitingChunks = 1024

  private let parts: AsyncThrowingStream<Part, any Error>
  private let continuation: AsyncThrowingStream<Part, any Error>.Continuation
  private let server: String
  private let session = Locked<URLSession?>(nil)

  /// Starts a request. Silence for as long as its timeout counts as a lost connection.
  init(_ request: URLRequest, server: String) {
    (parts, continuation) = AsyncThrowingStream.makeStream(
      bufferingPolicy: .bufferingOldest(Self.maximumWaitingChunks))
    self.server = server
    super.init()
    let configuration = Client.configuration(timeoutSeconds: request.timeoutInterval, connections: 1)
    let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    self.session.withLock { $0 = session }
    session.dataTask(with: request).resume()
  }

  /// Ends the transfer; safe to call twice. The session holds its delegate until then, so every transfer must be
  /// cancelled.
  func cancel() {
    let session = session.withLock { session in
      defer { session = nil }
      return session
    }
    session?.invalidateAndCancel()
    continuation.finish()
  }

  /// Returns the next part; nil at the end, also if the surrounding task is cancelled.
  func next() async throws -> Part? {
    for try await part in parts { return part }
    return nil
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
  ) {
    yield(.response(Client.response(response, body: [])))
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    yield(.bytes([UInt8](data)))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    guard let error else { return continuation.finish() }
    let reason = (error as? URLError).map(Client.reason) ?? error.localizedDescription
    continuation.finish(throwing: ClientError.unreachable(server: server, reason: reason))
  }

  private func yield(_ part: Part) {
    guard case .dropped = continuation.yield(part) else { return }
    cancel()
  }
}
