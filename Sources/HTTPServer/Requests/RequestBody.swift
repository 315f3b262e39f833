/// The body of a request as it arrives, and the memory that its client holds for it.
struct RequestBody {
  private(set) var bytes: [UInt8] = []
  /// What the client holds for the body, and for what was made of it; nil while that is little.
  private(set) var memory: MemoryReservation?

  /// An empty body.
  init() {}

  /// A body that has come in that of another request, whose client holds the memory.
  init(carried bytes: [UInt8]) { self.bytes = bytes }

  /// Takes the memory for a body of a declared length at once: a client that announces much and sends it slowly takes
  /// it from itself.
  mutating func announce(
    _ length: Int, of client: ClientAddress, in ledger: MemoryLedger
  ) throws(MemoryRefusal) {
    guard length > MemoryLedger.uncountedBytes else { return }
    try hold(length, of: client, in: ledger)
    bytes.reserveCapacity(length)
  }

  /// Adds a part that has come, with the memory for it. What was not announced grows by doubling, up to `limit` bytes.
  mutating func append(
    _ part: UnsafeRawBufferPointer, limit: Int, of client: ClientAddress, in ledger: MemoryLedger
  ) throws(MemoryRefusal) {
    let count = bytes.count + part.count
    if count > bytes.capacity {
      let capacity = max(count, min(2 * count, limit))
      try hold(capacity, of: client, in: ledger)
      bytes.reserveCapacity(capacity)
    }
    bytes.append(contentsOf: part)
  }

  /// Makes what the client holds for the request this many bytes.
  mutating func hold(_ byteCount: Int, of client: ClientAddress, in ledger: MemoryLedger) throws(MemoryRefusal) {
    if let memory {
      try memory.resize(to: byteCount)
    } else if byteCount > MemoryLedger.uncountedBytes {
      memory = try ledger.reserve(byteCount, for: client, .requestBodies)
    }
  }

  /// Forgets the bytes, which were read; what they were made into stays reserved.
  mutating func clear() { bytes = [] }
}
