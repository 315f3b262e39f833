import Dispatch
import Support

/// A request under way, and the response to it, read piece by piece.
///
/// At most `OutboundClient.Limits.bufferBytes` of content are held; the server is not read from while the buffer is
/// full. One thread at a time reads; any thread cancels. A transfer that nothing refers to any more is cancelled, which
/// closes its connection unless the response was complete.
package final class OutboundTransfer: Sendable {
  private let core: TransferCore
  private let queue: TransferQueue

  /// Makes the reader of a transfer that was queued.
  init(_ core: TransferCore, _ queue: TransferQueue) {
    (self.core, self.queue) = (core, queue)
  }

  deinit { cancel() }

  /// Waits for the head of the response, and returns it without content. A timeout cancels the transfer.
  package func head(before deadline: ContinuousClock.Instant) throws(OutboundFault) -> OutboundResponse {
    while true {
      let (head, fault) = core.state.withLock { ($0.head, $0.faultBeforeHead) }
      if let head { return head }
      if let fault { throw fault }
      try wait(until: deadline)
    }
  }

  /// Waits for content, and returns all that has come; empty at the end. A timeout cancels the transfer.
  package func content(before deadline: ContinuousClock.Instant) throws(OutboundFault) -> [UInt8] {
    while true {
      if let content = try contentNow() { return content }
      try wait(until: deadline)
    }
  }

  /// Returns the content that has come; empty at the end, nil if nothing came since the last call.
  package func contentNow() throws(OutboundFault) -> [UInt8]? {
    switch core.state.withLock({ $0.next() }) {
    case .content(let bytes, let resumes):
      if resumes { queue.post(.resume(core)) }
      return bytes
    case .end: return []
    case .fault(let fault): throw fault
    case .nothing: return nil
    }
  }

  /// True once all content was returned and nothing more comes.
  package var isFinished: Bool { core.state.withLock { $0.isFinished } }

  /// Calls `body` after something came: the head, content, or the end. It runs on the thread of all transfers, so it
  /// must not wait. Called once right away, because something may have come before.
  package func whenReadable(_ body: @escaping @Sendable () -> Void) {
    core.observe(body)
    body()
  }

  /// Ends the transfer, unless it is over; its reader gets a fault of the kind `cancelled`.
  package func cancel() { cancel(.cancelled, "the request was cancelled") }

  private func cancel(_ kind: OutboundFault.Kind, _ reason: String) {
    let isOver = core.state.withLock { state in
      defer { state.fail(OutboundFault(kind, reason, isUnsent: !state.isSent)) }
      return state.isOver
    }
    guard !isOver else { return }
    queue.post(.cancel(core))
    core.notify()
  }

  private func wait(until deadline: ContinuousClock.Instant) throws(OutboundFault) {
    let rest = (deadline - .now).components
    let nanoseconds = min(rest.seconds, 86_400) * 1_000_000_000 + rest.attoseconds / 1_000_000_000
    if nanoseconds > 0, core.wait(nanoseconds: Int(nanoseconds)) { return }
    // What came in the last moment counts: the next look finds this fault, or that there is none.
    cancel(.timeout, "no response in time")
  }
}

/// The part of a transfer that its reader and the thread of all transfers share.
final class TransferCore: Sendable {
  let request: OutboundRequest
  let state: Locked<TransferState>
  private let news = DispatchSemaphore(value: 0)
  private let observer = Locked<KeptAction<Void, Void>?>(nil)

  /// Makes a transfer that has not begun.
  init(_ request: OutboundRequest, bufferBytes: Int) {
    self.request = request
    state = Locked(TransferState(bufferBytes: bufferBytes, isRepeatable: request.isSafe))
  }

  /// Calls `body` with each `notify` from now on.
  func observe(_ body: @escaping @Sendable () -> Void) {
    observer.withLock { $0 = KeptAction { body() } }
  }

  /// Wakes the reader, if something came of which it was not told.
  func notify() {
    guard state.withLock({ $0.takeNews() }) else { return }
    news.signal()
    observer.withLock { $0 }?(())
  }

  /// Waits until something comes. False after a timeout.
  func wait(nanoseconds: Int) -> Bool { news.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success }
}
