package import HTTPTypes

/// A request that has arrived whole, on a connection of its own or carried in the body of another. It lives while the
/// handler works on it: being noncopyable and only ever lent, it cannot be kept, and neither can the memory of the
/// connection it reads from.
package struct Request: ~Copyable {
  private enum Origin {
    case connection(DaemonConnection, Connection)
    case carried(CarriedRequest)
  }

  /// Its name, in the answer and in logs.
  package let id: RequestID
  /// The method, known or not.
  package let method: HTTPRequest.Method
  /// The request target as it was sent, query and percent-escapes included: `/v1/a/b?x=%20`. It has no spaces and no
  /// control characters.
  package let target: String
  private let origin: Origin
  private let holder: any RequestHolder
  private let ledger: MemoryLedger

  init(
    id: RequestID, method: HTTPRequest.Method, target: String, holder: Connection, connection: DaemonConnection,
    ledger: MemoryLedger
  ) {
    self.id = id
    self.method = method
    self.target = target
    origin = .connection(connection, holder)
    self.holder = holder
    self.ledger = ledger
  }

  /// A request that another one has carried here.
  init(_ carried: CarriedRequest, ledger: MemoryLedger) {
    id = carried.id
    method = carried.message.method
    target = carried.message.target
    origin = .carried(carried)
    holder = carried
    self.ledger = ledger
  }

  /// Where it came from, as far as the connection, or a trusted proxy, says.
  package var address: ClientAddress { holder.address }

  /// The address of this machine that it came to; nil for a socket that has none.
  package var destination: ClientAddress? { holder.destination }

  /// Whether a trusted proxy says that its client used TLS.
  package var isForwardedOverTLS: Bool { holder.isForwardedOverTLS }

  /// Whose share it counts for: the address, or what was noted.
  package var client: ClientAddress { holder.client }

  /// Says whose share it counts for from now on. The body that has arrived stays with the address.
  package func note(client: ClientAddress) { holder.client = client }

  /// Whether it came in the body of another request.
  package var isCarried: Bool {
    if case .carried = origin { true } else { false }
  }

  /// What hands requests in the body of this one to the server's handler; nil for one that was carried itself.
  package var carrier: RequestCarrier? {
    guard case .connection(_, let connection) = origin else { return nil }
    return RequestCarrier(id: id, sender: address, destination: destination, server: connection.server)
  }

  /// The value of a header field, `nil` if it was not sent; several lines of one name are joined by ", ". Each call for
  /// one that may have been sent looks through the lines anew. Bytes that are not UTF-8 come as replacement characters.
  package func header(_ name: HTTPField.Name) -> String? {
    switch origin {
    case .connection(let connection, let holder):
      holder.fieldNames.mayContain(name.canonicalName) ? connection.field(name.canonicalName) : nil
    case .carried(let carried): carried.message[name]
    }
  }

  /// Keeps the body until the request is answered, or handled once more: see `Completion.handleAgain` and
  /// `Response.retry`.
  package func keepBody() { holder.keepsBody = true }

  /// True if the handler had the request before, and has it once more.
  package var isHandledAgain: Bool { holder.isHandledAgain }

  /// The findings of the handler since it had the request before: see `Completion.handleAgain`.
  package var outcome: (any Sendable)? { holder.outcome }

  /// Says which resource is asked for, as the access log names it: by its pattern, never by what was sent.
  package func note(route pattern: String) { holder.access?.record.route = pattern }

  /// Notes the `sub` of the identity that asks, for the access log.
  package func note(subject: String) { holder.access?.record.subject = subject }

  /// The whole body, empty if there was none; at most `ServerLimits.bodyBytes`.
  package func body() -> [UInt8] { holder.body.bytes }

  /// Makes what the client holds for this request so many bytes, from here until it is answered: for what was made of
  /// the body, which may be many times as large. Throws where that is over its share or over what there is; then it
  /// holds what it did.
  package func hold(_ byteCount: Int) throws(MemoryRefusal) {
    try holder.body.hold(byteCount, of: holder.client, in: ledger)
  }

  /// The memory that the client holds for the body, or for what was made of it, in bytes; 0 while that is little.
  package var heldBytes: Int { holder.body.memory?.byteCount ?? 0 }
}

/// What the server keeps of a request while the handler works on it.
protocol RequestHolder: AnyObject {
  /// Where it came from.
  var address: ClientAddress { get }
  /// The address of this machine that it came to; nil for a socket that has none.
  var destination: ClientAddress? { get }
  /// Whether a trusted proxy says that its client used TLS.
  var isForwardedOverTLS: Bool { get }
  /// Whose share it counts for.
  var client: ClientAddress { get set }
  var body: RequestBody { get set }
  /// Whether it may be handled once more after its response was made.
  var keepsBody: Bool { get set }
  /// True if the handler had it before.
  var isHandledAgain: Bool { get }
  /// The findings of the handler since then.
  var outcome: (any Sendable)? { get }
  /// What the access log will say of it; nil where there is none.
  var access: AccessEntry? { get }
}

/// The body of a request as it arrives, and the memory that its client holds for it.
struct RequestBody {
  private(set) var bytes: [UInt8] = []
  /// What the client holds for the body, and for what was made of it; nil while that is little.
  private(set) var memory: MemoryReservation?

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

/// The versions of the protocol that matter to an answer.
enum HTTPVersion: Sendable, Equatable {
  /// HTTP/1.0, or older: no chunks, no connection kept unless asked for.
  case http10
  /// HTTP/1.1, or a later 1.x.
  case http11
}
