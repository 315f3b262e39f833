package import HTTPTypes

/// A complete request, received on a connection of its own or carried in the body of another request. It lives while
/// the handler works on it: since it is noncopyable and only ever borrowed, neither the request nor the memory of the
/// connection that it reads from can be kept.
package struct Request: ~Copyable {
  private enum Origin {
    case connection(DaemonConnection, Connection)
    case carried(CarriedRequest)
  }

  /// The request's ID, in the response and in logs.
  package let id: RequestID
  /// The method, known or not.
  package let method: HTTPRequest.Method
  /// The request target as it was sent, including the query and percent-escapes: `/v1/a/b?x=%20`. It has no spaces and
  /// no control characters.
  package let target: String
  /// The header fields that the request may have.
  private let fieldNames: FieldNameFilter
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
    fieldNames = holder.fieldNames
    origin = .connection(connection, holder)
    self.holder = holder
    self.ledger = ledger
  }

  /// Creates a request that another request has carried.
  init(_ carried: CarriedRequest, ledger: MemoryLedger) {
    id = carried.id
    method = carried.message.method
    target = carried.message.target
    fieldNames = .all
    origin = .carried(carried)
    holder = carried
    self.ledger = ledger
  }

  /// The origin of the request, according to the connection or a trusted proxy.
  package var address: ClientAddress { holder.address }

  /// The address of this machine that the request was sent to; nil for a socket without an address.
  package var destination: ClientAddress? { holder.destination }

  /// True if a trusted proxy reports that its client used TLS.
  package var isForwardedOverTLS: Bool { holder.isForwardedOverTLS }

  /// The client for whose share the request counts: the address, or the client that was noted.
  package var client: ClientAddress { holder.client }

  /// Sets the client for whose share the request counts from now on. The body that has arrived still counts for the
  /// address.
  package func note(client: ClientAddress) { holder.client = client }

  /// True if the request came in the body of another request.
  package var isCarried: Bool {
    if case .carried = origin { true } else { false }
  }

  /// The carrier, which hands requests in the body of this one to the server's handler; nil for a request that was
  /// carried itself.
  package var carrier: RequestCarrier? {
    guard case .connection(_, let connection) = origin else { return nil }
    return RequestCarrier(id: id, sender: address, destination: destination, server: connection.server)
  }

  /// Returns the value of a header field, with several lines of one name joined by ", "; nil if it was not sent. Each
  /// call for a field that may have been sent searches the lines anew. Bytes that are not UTF-8 become replacement
  /// characters.
  package func header(_ name: HTTPField.Name) -> String? {
    guard fieldNames.mayContain(name.canonicalName) else { return nil }
    return switch origin {
    case .connection(let connection, _): connection.field(name.canonicalName)
    case .carried(let carried): carried.message[name]
    }
  }

  /// Keeps the body until the request is answered or handled again: see `Completion.handleAgain` and `Response.retry`.
  package func keepBody() { holder.keepsBody = true }

  /// True if the handler has already had the request.
  package var isHandledAgain: Bool { holder.isHandledAgain }

  /// The results of the handler since it first had the request: see `Completion.handleAgain`.
  package var outcome: (any Sendable)? { holder.outcome }

  /// Notes the requested resource for the access log: as its pattern, never as it was sent.
  package func note(route pattern: String) { holder.access?.record.route = pattern }

  /// Notes the `sub` of the identity that makes the request, for the access log.
  package func note(subject: String) { holder.access?.record.subject = subject }

  /// Returns the whole body, empty if there was none; at most `ServerLimits.bodyBytes`.
  package func body() -> [UInt8] { holder.body.bytes }

  /// Sets the number of bytes that the client holds for this request until it is answered: for the data decoded from
  /// the body, which may be many times as large. Throws if this exceeds the client's share or the total; the number is
  /// then unchanged.
  package func hold(_ byteCount: Int) throws(MemoryRefusal) {
    try holder.body.hold(byteCount, of: holder.client, in: ledger)
  }

  /// The memory that the client holds for the body, or for the data decoded from it, in bytes; 0 while that is little.
  package var heldBytes: Int { holder.body.memory?.byteCount ?? 0 }
}

/// The server's state of a request while the handler works on it.
protocol RequestHolder: AnyObject {
  /// The origin of the request.
  var address: ClientAddress { get }
  /// The address of this machine that the request was sent to; nil for a socket without an address.
  var destination: ClientAddress? { get }
  /// True if a trusted proxy reports that its client used TLS.
  var isForwardedOverTLS: Bool { get }
  /// The client for whose share the request counts.
  var client: ClientAddress { get set }
  var body: RequestBody { get set }
  /// True if the request may be handled again after its response was made.
  var keepsBody: Bool { get set }
  /// True if the handler has already had the request.
  var isHandledAgain: Bool { get }
  /// The results of the handler since then.
  var outcome: (any Sendable)? { get }
  /// The access log entry of the request; nil if there is none.
  var access: AccessEntry? { get }
}

/// The body of a request as it arrives, and the memory that its client holds for it.
struct RequestBody {
  private(set) var bytes: [UInt8] = []
  /// The reservation for the body, or for the data decoded from it; nil while that is little.
  private(set) var memory: MemoryReservation?

  /// Reserves the memory for a body of a declared length immediately: a client that announces a large body and sends it
  /// slowly uses up its own share.
  mutating func announce(
    _ length: Int, of client: ClientAddress, in ledger: MemoryLedger
  ) throws(MemoryRefusal) {
    guard length > MemoryLedger.uncountedBytes else { return }
    try hold(length, of: client, in: ledger)
    bytes.reserveCapacity(length)
  }

  /// Appends a part that has arrived, with the memory for it. A body that was not announced grows by doubling, up to
  /// `limit` bytes.
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

  /// Sets the number of bytes that the client holds for the request.
  mutating func hold(_ byteCount: Int, of client: ClientAddress, in ledger: MemoryLedger) throws(MemoryRefusal) {
    if let memory {
      try memory.resize(to: byteCount)
    } else if byteCount > MemoryLedger.uncountedBytes {
      memory = try ledger.reserve(byteCount, for: client, .requestBodies)
    }
  }

  /// Releases the bytes, which were read; the memory of the data decoded from them stays reserved.
  mutating func clear() { bytes = [] }
}

/// The protocol versions that matter to a response.
enum HTTPVersion: Sendable, Equatable {
  /// HTTP/1.0 or older: no chunks, and no persistent connection unless requested.
  case http10
  /// HTTP/1.1, or a later 1.x.
  case http11
}
