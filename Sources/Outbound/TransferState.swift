/// The progress of one transfer, and the content that its reader has not taken yet: a state machine without I/O.
///
/// libcurl's callbacks put in what comes, on the thread of the transfers; the reader takes it out on its own.
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
    /// Content. With `resumes` the transfer was paused, and must be told to go on.
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
  /// True if something came of which the reader was not told.
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
  var isOver: Bool { isComplete || fault != nil }

  /// True once nothing more comes, and the reader has taken all content.
  var isFinished: Bool { isOver && content.isEmpty }

  // MARK: libcurl's side

  /// Notes that the request is about to be sent on a connection. False if it must not be.
  ///
  /// libcurl repeats a request by itself if a kept connection was lost before a response came, even though the server
  /// may have received it.
  mutating func beginSending() -> Bool {
    guard !isOver else { return false }
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
    guard !isOver else { return .refused }
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
    guard !isOver else { return }
    if head == nil { return fail(OutboundFault(.interrupted, "the response has no head", isUnsent: false)) }
    isComplete = true
    hasNews = true
  }

  /// Notes that no complete response will come. The first fault counts.
  mutating func fail(_ fault: OutboundFault) {
    guard !isOver else { return }
    self.fault = fault
    hasNews = true
  }

  /// Returns true once after something came.
  mutating func takeNews() -> Bool {
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
  var faultBeforeHead: OutboundFault? { head == nil ? fault : nil }
}
