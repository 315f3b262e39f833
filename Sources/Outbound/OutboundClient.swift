import Support

/// An HTTP client for requests to other servers, over libcurl.
///
/// One thread works on all transfers, and is started with the first. Connections are kept and used again. Certificates
/// are always verified, redirects are never followed, and proxies that the environment names are not used.
///
/// ```swift
/// let client = OutboundClient(caFile: nil)
/// let request = OutboundRequest("GET", "https://login.example.org", "/keys")
/// let response = try client.send(request, limit: 1 << 20, before: .now + .seconds(10))
/// ```
package final class OutboundClient: Sendable {
  /// The bounds of a client.
  package struct Limits: Sendable {
    /// The most transfers at a time.
    package var transfers = 8_192
    /// The most content of a transfer that is held until it is read, in bytes.
    package var bufferBytes = 64 << 10
    /// The most bytes of the head and the trailers of a response.
    package var headBytes = 64 << 10
    /// The most connections that are kept while they are not used.
    package var idleConnections = 128
    /// The time after which such a connection is not used again, in seconds: shorter than servers keep theirs, so that
    /// they seldom close one that is about to be used.
    package var idleSeconds = 4

    /// Makes the default limits.
    package init() {}
  }

  private struct State {
    var worker: (queue: TransferQueue, thread: SystemThread)?
    var isStopped = false
  }

  private let caFile: String?
  private let limits: Limits
  private let state = Locked(State())

  /// Makes a client that trusts the certificates in a file of PEM in place of those of the system, if one is given.
  package init(caFile: String?, limits: Limits = Limits()) {
    (self.caFile, self.limits) = (caFile, limits)
  }

  deinit { stop() }

  /// The number of transfers under way.
  package var transferCount: Int { state.withLock { $0.worker?.queue }?.count ?? 0 }

  /// Sends a request, and waits for the whole response, whose content has at most `limit` bytes.
  package func send(
    _ request: OutboundRequest, limit: Int, before deadline: ContinuousClock.Instant
  ) throws(OutboundFault) -> OutboundResponse {
    let transfer = try open(request)
    var response = try transfer.head(before: deadline)
    while true {
      let piece = try transfer.content(before: deadline)
      if piece.isEmpty { return response }
      guard response.body.count + piece.count <= limit else {
        throw OutboundFault(.oversized, "the response has more than \(limit) bytes", isUnsent: false)
      }
      response.body += piece
    }
  }

  /// Sends a request, and returns at once.
  package func open(_ request: OutboundRequest) throws(OutboundFault) -> OutboundTransfer {
    let queue = try self.queue()
    let core = TransferCore(request, bufferBytes: limits.bufferBytes)
    guard queue.start(core, limit: limits.transfers) else {
      throw OutboundFault(.overloaded, "the limit of \(limits.transfers) outbound requests is reached", isUnsent: true)
    }
    return OutboundTransfer(core, queue)
  }

  /// Ends all transfers, and waits for the end of the thread. Requests fail from now on.
  package func stop() {
    let worker = state.withLock { state in
      defer { (state.worker, state.isStopped) = (nil, true) }
      return state.worker
    }
    guard let worker else { return }
    worker.queue.post(.stop)
    worker.thread.join()
  }

  private func queue() throws(OutboundFault) -> TransferQueue {
    let (caFile, limits) = (caFile, limits)
    return try state.withLock { state throws(OutboundFault) in
      guard !state.isStopped else {
        throw OutboundFault(.cancelled, "this program is about to stop", isUnsent: true)
      }
      if let worker = state.worker { return worker.queue }
      guard let queue = TransferQueue() else { throw .lacksMemory }
      guard let thread = SystemThread("keyway-outbound", { TransferLoop(queue, caFile: caFile, limits).run() }) else {
        _ = queue.close()
        throw OutboundFault(.overloaded, "the system has no thread left for outbound requests", isUnsent: true)
      }
      state.worker = (queue, thread)
      return queue
    }
  }
}
