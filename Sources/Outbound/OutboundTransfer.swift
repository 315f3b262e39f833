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
    let hasEnded = core.state.withLock { state in
      defer { state.fail(OutboundFault(kind, reason, isUnsent: !state.isSent)) }
      return state.hasEnded
    }
    guard !hasEnded else { return }
    queue.post(.cancel(core))
    core.notify()
  }

  private func wait(until deadline: ContinuousClock.Instant) throws(OutboundFault) {
    let rest = (deadline - .now).components
    let nanoseconds = min(rest.seconds, 86_400) * 1_000_000_000 + rest.attoseconds / 1_000_000_000
    if nanoseconds > 0, core.wait(nanoseconds: Int(nanoseconds)) { return }
    // What came at the last moment counts: the next step finds this fault, or that the transfer was over.
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
  fileprivate func observe(_ body: @escaping @Sendable () -> Void) {
    observer.withLock { $0 = KeptAction { body() } }
  }

  /// Wakes the reader, if something came of which it was not notified.
  func notify() {
    guard state.withLock({ $0.takeNews() }) else { return }
    news.signal()
    observer.withLock { $0 }?(())
  }

  /// Waits until something comes. False after a timeout.
  fileprivate func wait(nanoseconds: Int) -> Bool { news.wait(timeout: .now() + .nanoseconds(nanoseconds)) == .success }
}

/// The progress of one transfer, and the content that its reader has not taken yet: a state machine without I/O.
///
/// libcurl's callbacks add what comes, on the thread of the transfers; the reader takes it on its own thread.
struct TransferState: Sendable {
  /// The reply to libcurl when content comes.
  enum Reception {
    /// The content was taken.
    case taken
    /// The buffer is full. The same content must come again after the transfer was resumed.
    case full
    /// The transfer is over.
    case refused
  }

  /// The next step of the reader.
  enum Step {
    /// Content. With `resumes` the transfer was paused, and must be resumed.
    case content([UInt8], resumes: Bool)
    /// The response is complete.
    case end
    /// There is no more content, because of a fault.
    case fault(OutboundFault)
    /// Nothing has come since the last step.
    case nothing
  }

  private let bufferBytes: Int
  private let isRepeatable: Bool
  private var content: [UInt8] = []
  private var isPaused = false
  private var isComplete = false
  private var fault: OutboundFault?
  /// True if something came of which the reader was not notified.
  private var hasNews = false

  /// True once any part of the request may have been received.
  private(set) var isSent = false
  /// The head of the response, once it has come.
  private(set) var head: OutboundResponse?

  /// Makes the state of a transfer with a buffer of so many bytes. A request that is not repeatable is sent once.
  init(bufferBytes: Int, isRepeatable: Bool) {
    (self.bufferBytes, self.isRepeatable) = (bufferBytes, isRepeatable)
  }

  /// True once nothing more comes.
  var hasEnded: Bool { isComplete || fault != nil }

  /// True once nothing more comes, and the reader has taken all content.
  var isFinished: Bool { hasEnded && content.isEmpty }

  // MARK: libcurl's side

  /// Notes that the request is about to be sent on a connection. False if it must not be.
  ///
  /// libcurl repeats a request by itself if a kept connection was lost before a response came, even though the server
  /// may have received it.
  mutating func beginSending() -> Bool {
    guard !hasEnded else { return false }
    if isSent, !isRepeatable {
      fail(OutboundFault(.interrupted, "the connection was lost after the request was sent", isUnsent: false))
      return false
    }
    isSent = true
    return true
  }

  /// Takes the head of the response.
  mutating func receive(_ head: OutboundResponse) {
    self.head = head
    hasNews = true
  }

  /// Takes content, unless that would make the buffer larger than its limit. A piece larger than the limit is taken
  /// into an empty buffer.
  mutating func receive(_ bytes: UnsafeRawBufferPointer) -> Reception {
    guard !hasEnded else { return .refused }
    guard content.isEmpty || content.count + bytes.count <= bufferBytes else {
      isPaused = true
      return .full
    }
    content.append(contentsOf: bytes)
    hasNews = true
    return .taken
  }

  /// Notes that the response is complete.
  mutating func complete() {
    guard !hasEnded else { return }
    if head == nil { return fail(OutboundFault(.interrupted, "the response has no head", isUnsent: false)) }
    isComplete = true
    hasNews = true
  }

  /// Notes that no complete response will come. The first fault counts.
  mutating func fail(_ fault: OutboundFault) {
    guard !hasEnded else { return }
    self.fault = fault
    hasNews = true
  }

  /// Returns true once after something came.
  fileprivate mutating func takeNews() -> Bool {
    defer { hasNews = false }
    return hasNews
  }

  // MARK: The reader's side

  /// Takes all content that has come.
  mutating func next() -> Step {
    if !content.isEmpty {
      defer { (content, isPaused) = ([], false) }
      return .content(content, resumes: isPaused)
    }
    if let fault { return .fault(fault) }
    return isComplete ? .end : .nothing
  }

  /// Takes the fault that kept the head from coming.
  fileprivate var faultBeforeHead: OutboundFault? { head == nil ? fault : nil }
}
