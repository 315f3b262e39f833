import HTTPServer

/// Why the server ends a stream, as `bye` says it (the specification, section 4).
enum ClosingReason: String {
  case shutdown, expired, lifetime, overflow
}

extension EventEncoder {
  /// The `bye` of a stream that the hub ends.
  func closingEvent(after end: StreamEnd) -> EventBytes {
    switch end {
    case .overflow: closingEvent(.overflow)
    case .lifetime: closingEvent(.lifetime)
    case .shutdown, .ended, .clientGone, .stalled: closingEvent(.shutdown)
    }
  }
}
