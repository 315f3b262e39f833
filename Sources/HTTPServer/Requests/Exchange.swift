/// One request on its way through the server, without any input or output of its own.
///
/// It also says whose the connection is. libmicrohttpd has it while the request is read and the answer written; the
/// handler while it is suspended for a deferred answer; the hub once it became a stream, and from then on libmicrohttpd
/// may only forget it. Used by the one libmicrohttpd thread that the connection belongs to.
struct Exchange: Equatable {
  /// What the access handler has to do next.
  enum Step: Equatable {
    /// Let the body come.
    case proceed
    /// Add the bytes to the body.
    case keep
    /// Forget the bytes.
    case discard
    /// Respond to this fault.
    case refuse(RequestFault)
    /// Hand the request to the handler.
    case handle
    /// Send the response that was deferred, or make a stream of the connection.
    case respondDeferred
    /// Let libmicrohttpd close its descriptor.
    case close
  }

  /// Where the request is.
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

  /// Whether the header has not been looked at.
  var hasJustBegun: Bool { if case .begun = phase { true } else { false } }

  /// Whether the connection is suspended, or was resumed for an answer that has not been sent.
  var isSuspended: Bool { if case .suspended = phase { true } else { false } }

  init(bodyLimit: Int) {
    self.bodyLimit = bodyLimit
  }

  /// How much of a body that grew too large is read and thrown away, so that its sender comes to hear why.
  private var discardLimit: Int { 16 * bodyLimit }

  /// The header has been read. Refusing here closes the connection, because the body is still to come.
  mutating func headerArrived(_ header: RequestHeader) -> Step {
    if let fault = header.fault ?? tooLarge(header.contentLength ?? 0) {
      phase = .responded
      return .refuse(fault)
    }
    phase = .receiving(byteCount: 0)
    return .proceed
  }

  /// There is no memory for the part of the body that came: what is left of it is thrown away.
  mutating func refused(_ refusal: MemoryRefusal) {
    guard case .receiving(let received) = phase else { return }
    phase = .refusing(.memoryRefused(refusal), discardedByteCount: received)
  }

  /// libmicrohttpd called again with this many bytes of the body; none means that the body is complete, or that the
  /// connection was resumed.
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

  /// The handler gave its response.
  mutating func responded() {
    assert(phase == .handling)
    phase = .responded
  }

  /// The handler will answer later; the connection is suspended.
  mutating func suspended() {
    assert(phase == .handling)
    phase = .suspended
  }

  /// The hub has a descriptor of its own for the connection.
  mutating func handedOff() {
    assert(phase == .handling)
    phase = .handedOff
  }

  private func tooLarge(_ byteCount: Int) -> RequestFault? {
    byteCount > bodyLimit ? .bodyTooLarge(limit: bodyLimit) : nil
  }
}
