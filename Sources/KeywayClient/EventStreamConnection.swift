import Foundation
import FoundationNetworking

/// A stream that reconnects: what EventSource is in a browser, with the protocol's own rules on top.
///
/// It connects when the first event is asked for, goes on with `Last-Event-ID` after every loss of the connection and
/// every `bye`, and waits between attempts as `ReconnectionPolicy` says. It ends after 204, and after `gone` where the
/// stream is of a single object; a 4xx other than 429 is thrown as a `Problem`. The events of a commit that was cut off
/// in the middle come once more after reconnecting: an id names only what was received whole.
///
/// Mutable are the transfer of the present attempt, its parser and the events not yet taken, all guarded by the actor;
/// one consumer at a time.
package actor EventStreamConnection {
  private let client: Client
  private let path: String
  private let endsAfterGone: Bool
  private let silenceSeconds: Double
  private let notify: @Sendable (EventStreamNotice) -> Void

  private var policy: ReconnectionPolicy
  private var lastEventID: String
  private var transfer: EventStreamTransfer?
  private var parser = EventStreamParser()
  private var waiting: ArraySlice<ServerSentEvent> = []
  private var isOver = false

  /// A stream of `path`. `silenceSeconds` without a byte count as a lost connection: several of the server's
  /// heartbeats.
  package init(
    _ client: Client, path: String, lastEventID: String = "", endsAfterGone: Bool = false,
    policy: ReconnectionPolicy = ReconnectionPolicy(), silenceSeconds: Double = 60,
    notify: @escaping @Sendable (EventStreamNotice) -> Void = { _ in }
  ) {
    self.client = client
    self.path = path
    self.lastEventID = lastEventID
    self.endsAfterGone = endsAfterGone
    self.policy = policy
    self.silenceSeconds = silenceSeconds
    self.notify = notify
  }

  deinit { transfer?.cancel() }

  /// The events in order, made as they are asked for. One sequence per connection.
  package nonisolated var events: AsyncThrowingStream<ServerSentEvent, any Error> {
    AsyncThrowingStream { try await self.next() }
  }

  /// The next event; nil when the stream is over or the surrounding task is cancelled.
  package func next() async throws -> ServerSentEvent? {
    while !isOver, !Task.isCancelled {
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
    isOver = true
    transfer?.cancel()
    transfer = nil
    waiting = []
  }

  private func take(_ event: ServerSentEvent) {
    // Behind the last event of what has come, blocks without data may have moved the id, or reset it.
    lastEventID = waiting.isEmpty ? parser.lastEventID : event.id
    if endsAfterGone, event.event == "gone" { isOver = true }
  }

  /// Reads one more part of the stream, with a new connection where there is none.
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
    request.timeoutInterval = silenceSeconds
    let transfer = EventStreamTransfer(
      request, server: client.server.absoluteString, silenceSeconds: silenceSeconds)
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

  /// Does what a response other than 200 asks for.
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
    // A cancelled sleep is no error: `next` looks at the cancellation itself.
    try? await Task.sleep(for: .milliseconds(delay))
  }
}
