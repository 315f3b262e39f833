import Foundation
import FoundationNetworking
import Support

/// One attempt at a stream: a URL session task whose bytes come as an asynchronous sequence.
///
/// URLSession has no back pressure, so the queue between its thread and the reader is bounded in chunks: when it is
/// full, the transfer is cut, and the reader, having taken what was there, resumes with its last event id. A slow
/// reader costs a reconnection, never memory.
final class EventStreamTransfer: NSObject, URLSessionDataDelegate {
  /// What a transfer gives, in this order: one response, then bytes. The sequence ends, or throws a `ClientError`.
  enum Part: Sendable {
    case response(ClientResponse)
    case bytes([UInt8])
  }

  /// How many chunks may wait; each is at most what libcurl reads at once, 16 KiB.
  static let maximumWaitingChunks = 1024

  let parts: AsyncThrowingStream<Part, any Error>
  private let continuation: AsyncThrowingStream<Part, any Error>.Continuation
  private let server: String
  private let session = Locked<URLSession?>(nil)

  /// Starts a request; silence of `silenceSeconds` counts as a lost connection.
  init(_ request: URLRequest, server: String, silenceSeconds: Double) {
    (parts, continuation) = AsyncThrowingStream.makeStream(
      bufferingPolicy: .bufferingOldest(Self.maximumWaitingChunks))
    self.server = server
    super.init()
    let configuration = Client.configuration(timeoutSeconds: silenceSeconds, connections: 1)
    let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
    self.session.withLock { $0 = session }
    session.dataTask(with: request).resume()
  }

  /// Ends the transfer; safe to call twice. The session holds its delegate until then, so every transfer
  /// has to be cancelled.
  func cancel() {
    let session = session.withLock { session in
      defer { session = nil }
      return session
    }
    session?.invalidateAndCancel()
    continuation.finish()
  }

  /// The next part, or nil at the end, also when the surrounding task is cancelled.
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
