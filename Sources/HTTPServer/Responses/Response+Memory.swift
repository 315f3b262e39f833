import HTTPTypes

extension Response {
  /// Takes the memory of the body from a client's, where it is counted.
  mutating func hold(of client: ClientAddress, in ledger: MemoryLedger) throws(MemoryRefusal) {
    guard body.count > MemoryLedger.uncountedBytes else { return }
    if let memory {
      try memory.resize(to: body.capacity)
    } else {
      memory = try ledger.reserve(body.capacity, for: client, .responses)
    }
  }

  /// Makes it the response of the same success that has no content.
  package mutating func dropBody() {
    body = []
    memory = nil
    fields[.contentType] = nil
    if status == .ok { status = .noContent }
  }
}
