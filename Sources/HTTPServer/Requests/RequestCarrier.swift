import Dispatch
package import HTTPTypes

/// Hands the requests in the body of another request, the carrier, to the server's handler.
///
/// Being carried does not make a request trusted. The origin of each is the one in its own `X-Forwarded-For` if the
/// sender of the carrier is a trusted proxy, and otherwise that sender. The sender is the origin of the carrier itself:
/// a client whose carrier came through a proxy is not a proxy, whatever the carried requests contain.
package struct RequestCarrier: Sendable {
  private let id: RequestID
  private let sender: ClientAddress
  private let destination: ClientAddress?
  private let server: ServerContext

  init(id: RequestID, sender: ClientAddress, destination: ClientAddress?, server: ServerContext) {
    (self.id, self.sender, self.destination, self.server) = (id, sender, destination, server)
  }

  /// Makes the handler answer a request, which has a number in the carrier. `answer` gets the response once, on any
  /// thread, possibly before this returns. The memory of the response's body counts for the request's client as long as
  /// the response is kept. `isAbandoned` returns true if no one waits for the carrier's response any more. Call it on a
  /// thread that may handle requests.
  package func handle(
    _ message: CarriedMessage, number: Int, isAbandoned: @escaping @Sendable () -> Bool,
    answer: @escaping @Sendable (Response) -> Void
  ) {
    let carried = CarriedRequest(
      message, id: message.requestID ?? RequestID(carriedBy: id, number: number), sender: sender,
      destination: destination, server: server, isAbandoned: isAbandoned, answer: answer)
    carried.handle()
  }
}

/// A request as another one carries it in its body: the equivalent of a request line, header lines and a body.
package struct CarriedMessage: Sendable {
  /// The method.
  package let method: HTTPRequest.Method
  /// The path and the query.
  package let target: String
  /// The fields in order, with lower-case names.
  package let fields: [(name: String, value: String)]
  /// The content.
  package let body: [UInt8]

  /// Creates a message; nil if the parts are not valid in a request (RFC 9112 §3, RFC 9110 §5): a method or a field's
  /// name that is not a token, a target with a blank, or a value with a line break.
  package init?(method: String, target: String, fields: [(name: String, value: String)], body: [UInt8]) {
    guard let method = HTTPRequest.Method(method), target.utf8.first == UInt8(ascii: "/"),
      target.utf8.allSatisfy(\.isTargetContent)
    else { return nil }
    var kept: [(name: String, value: String)] = []
    kept.reserveCapacity(fields.count)
    for field in fields {
      guard !field.name.isEmpty, field.name.utf8.allSatisfy({ ByteSet.token.contains($0) }),
        field.value.utf8.allSatisfy(\.isFieldContent)
      else { return nil }
      kept.append((field.name.lowercased(), field.value))
    }
    self.method = method
    self.target = target
    self.fields = kept
    self.body = body
  }

  /// Returns the value of a field, with several of one name joined by ", "; nil if there is none.
  subscript(name: HTTPField.Name) -> String? { self[name.canonicalName] }

  /// Returns the value of a field by its lower-case name, with several joined as in a header; nil if there is none.
  package subscript(name: String) -> String? {
    var value: String?
    for field in fields where field.name == name {
      value = value.map { $0 + fieldSeparator(name) + field.value } ?? field.value
    }
    return value
  }

  /// The ID that the client gave the request; nil if it sent none, an invalid one, or several.
  fileprivate var requestID: RequestID? {
    let name = RequestID.fieldName.lowercased()
    let values = fields.filter { $0.name == name }.map(\.value)
    guard values.count == 1 else { return nil }
    return Array(values[0].utf8).withUnsafeBytes { RequestID(sent: $0) }
  }
}

/// A request that came in the body of another one, on its way through the handler: the counterpart of `Connection`.
///
/// `@unchecked Sendable`: mutable state is touched by one thread at a time. That is the carrier's thread first; if the
/// handler defers its response, it releases the request before the request can be handled again, and from then on
/// `resumptions` owns it.
final class CarriedRequest: RequestHolder, @unchecked Sendable {
  let message: CarriedMessage
  let id: RequestID
  /// The origin of the request: the sender of the carrier, or the client that the sender names, if it is a trusted
  /// proxy.
  let address: ClientAddress
  /// True if a trusted proxy reports that its client used TLS.
  let isForwardedOverTLS: Bool
  /// The address of this machine that the carrier was sent to.
  let destination: ClientAddress?
  /// The client for whose share the request counts.
  var client: ClientAddress
  var body: RequestBody
  /// True if the request may be handled again after its response was made.
  var keepsBody = false
  private(set) var isHandledAgain = false
  private(set) var outcome: (any Sendable)?
  /// The access log entry of the request; nil if there is none.
  let access: AccessEntry?
  private let server: ServerContext
  private let hasLeft: @Sendable () -> Bool
  private let answer: @Sendable (Response) -> Void

  /// The queue on which requests are handled again, since the thread that asks for it may hold locks.
  private static let resumptions = DispatchQueue(label: "keyway.carried", qos: .userInitiated)

  init(
    _ message: CarriedMessage, id: RequestID, sender: ClientAddress, destination: ClientAddress?,
    server: ServerContext, isAbandoned: @escaping @Sendable () -> Bool, answer: @escaping @Sendable (Response) -> Void
  ) {
    self.message = message
    self.id = id
    self.destination = destination
    self.server = server
    hasLeft = isAbandoned
    self.answer = answer
    // A client that a proxy has named is not a client of a Unix domain socket.
    let forwarding = server.proxies.forwarding(by: sender, isLocal: server.isLocal && sender == .unknown) {
      message[$0]
    }
    address = forwarding?.origin ?? sender
    isForwardedOverTLS = forwarding?.isOverTLS ?? false
    client = server.limiter.client(at: address)
    // The memory counts for the client of the carrier.
    body = RequestBody(bytes: message.body)
    access = server.accessLog.flatMap { [address] in $0.isWanted ? AccessEntry($0, client: address) : nil }
    access?.record.id = id
    access?.record.method = message.method.rawValue
  }

  /// True if no one waits for the response any more.
  var isAbandoned: Bool { hasLeft() }

  /// Makes the handler answer the request, on the calling thread.
  fileprivate func handle() {
    let response = server.handler.handle(Request(self, ledger: server.ledger))
    if !keepsBody { body.clear() }
    switch response {
    case .response(let response): respond(response)
    case .deferred(let work): work(Completion(self, handler: server.handler))
    case .stream(let stream, _):
      server.hub.abandon(stream)
      respond(server.handler.response(to: .unanswered))
    }
  }

  /// Hands the request to the handler again, asynchronously.
  private func resume(with outcome: (any Sendable)?) {
    Self.resumptions.async { [self] in
      // Avoids work for a client that has left, or that a stopping server has already answered.
      guard !isAbandoned else { return respond(server.handler.response(to: .draining)) }
      self.outcome = outcome
      handle()
    }
  }

  /// Delivers the response, unless it says that the request is to be handled again. Call it once each time.
  func respond(_ response: Response) {
    if let retry = response.retry, keepsBody {
      (isHandledAgain, keepsBody) = (true, false)
      return resume(with: retry.outcome)
    }
    var response = server.held(response, of: client, at: address) { message.method }
    // Responses from files and withheld ones are meant for requests that read directly.
    if response.file != nil || response.withheldCount != nil || response.isStreamHead {
      response = server.handler.response(to: .unanswered)
    }
    server.handler.finish(&response, of: id) { message["origin"] }
    body = RequestBody()
    access?.answered(response)
    access?.end()
    answer(response)
  }
}
