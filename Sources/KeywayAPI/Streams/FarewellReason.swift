import HTTPServer

/// Why the server ends a stream, as `bye` says it (the specification, section 4).
enum FarewellReason: String {
  case shutdown, expired, lifetime, overflow
}

extension EventEncoder {
  /// The `bye` of a stream that the hub ends.
  func farewell(after end: StreamEnd) -> EventBytes {
    switch end {
    case .overflow: farewell(.overflow)
    case .lifetime: farewell(.lifetime)
    case .shutdown, .ended, .clientGone, .stalled: farewell(.shutdown)
    }
  }
}
