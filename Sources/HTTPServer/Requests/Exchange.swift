/// One request on its way through the server, without any input or output of its own.
///
/// It also tells who owns the connection: libmicrohttpd while the request is read and the response written; the handler
/// while the connection is suspended for a deferred response; the hub once it became a stream, after which
/// libmicrohttpd may only forget it. Used by the one libmicrohttpd thread that the connection belongs to.
struct Exchange: Equatable {
  /// The next action of the access handler.
  enum Step: Equatable {
    /// Receive the body.
    case proceed
    /// Add the bytes to the body.
    case keep
    /// Discard the bytes.
    case discard
    /// Respond to this fault.
    case refuse(RequestFault)
    /// Hand the request to the handler.
    case handle
    /// Send the deferred response, or turn the connection into a stream.
    case respondDeferred
    /// Let libmicrohttpd close its descriptor.
    case close
  }

  /// The state of the request.
  enum Phase: Equatable {
    case begun
    case receiving(byteCount: Int)
    case refusing(RequestFault, discardedByteCount: Int)
    case handling
    case suspended
    case responded
    case handedOff
  }

  private(set) var phase = Phase.begun
  let bodyLimit: Int

  /// True if the header has not been examined yet.
  var hasJustBegun: Bool { if case .begun = phase { true } else { false } }

  /// True if the connection is suspended, or was resumed for a response that has not been sent.
  var isSuspended: Bool { if case .suspended = phase { true } else { false } }

  init(bodyLimit: Int) {
    self.bodyLimit = bodyLimit
  }

  /// The number of bytes of a body that is too large that are read and discarded, so that its sender gets the response.
  private var discardLimit: Int { 16 * bodyLimit }

  /// Handles the header, which has been read. A refusal at this point closes the connection, because the body is still
  /// to come.
  mutating func headerArrived(_ header: RequestHeader) -> Step {
    if let fault = header.fault ?? tooLarge(header.contentLength ?? 0) {
      phase = .responded
      return .refuse(fault)
    }
    phase = .receiving(byteCount: 0)
    return .proceed
  }

  /// Refuses the body because there is no memory for the part that arrived: the rest of it is discarded.
  mutating func refused(_ refusal: MemoryRefusal) {
    guard case .receiving(let received) = phase else { return }
    phase = .refusing(.memoryRefused(refusal), discardedByteCount: received)
  }

  /// Handles another call of libmicrohttpd, with this many bytes of the body; 0 means that the body is complete, or
  /// that the connection was resumed.
  mutating func continued(byteCount: Int) -> Step {
    switch phase {
    case .receiving(let received):
      guard byteCount > 0 else {
        phase = .handling
        return .handle
      }
      if let fault = tooLarge(received + byteCount) {
        phase = .refusing(fault, discardedByteCount: received + byteCount)
        return .discard
      }
      phase = .receiving(byteCount: received + byteCount)
      return .keep
    case .refusing(let fault, let discarded):
      guard byteCount > 0 else {
        phase = .responded
        return .refuse(fault)
      }
      phase = .refusing(fault, discardedByteCount: discarded + byteCount)
      return discarded + byteCount > discardLimit ? .close : .discard
    case .suspended:
      phase = .handling
      return .respondDeferred
    case .begun, .handling, .responded, .handedOff:
      return .close
    }
  }

  /// Notes that the handler returned its response.
  mutating func responded() {
    assert(phase == .handling)
    phase = .responded
  }

  /// Notes that the handler will respond later and the connection is suspended.
  mutating func suspended() {
    assert(phase == .handling)
    phase = .suspended
  }

  /// Notes that the hub has a descriptor of its own for the connection.
  mutating func handedOff() {
    assert(phase == .handling)
    phase = .handedOff
  }

  private func tooLarge(_ byteCount: Int) -> RequestFault? {
    byteCount > bodyLimit ? .bodyTooLarge(limit: bodyLimit) : nil
  }
}
