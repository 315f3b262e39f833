import Dispatch
package import HTTPTypes

/// Hands the requests in the body of another one, the carrier, to the server's handler.
///
/// Nothing is believed of them because they came so. Where each is from is what its own `X-Forwarded-For` says, if
/// the sender of the carrier is a trusted proxy, and otherwise that sender. The sender is whom the carrier itself is
/// from: a client whose carrier came through a proxy is no proxy, whatever stands inside.
package struct RequestCarrier: Sendable {
  private let id: RequestID
  private let sender: ClientAddress
  private let destination: ClientAddress?
  private let server: ServerContext

  init(id: RequestID, sender: ClientAddress, destination: ClientAddress?, server: ServerContext) {
    (self.id, self.sender, self.destination, self.server) = (id, sender, destination, server)
  }

  /// Has the handler answer a request, which has a number in the carrier: `answer` gets the response once, on any
  /// thread, perhaps before this returns. Its body's memory is that of the request's client as long as the response is
  /// kept. `isAbandoned` says whether nobody waits for the carrier's answer any more. To be called on a thread that may
  /// handle requests.
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

/// A request as another one carries it in its body: what a request line, header lines and a body say otherwise.
package struct CarriedMessage: Sendable {
  /// The method.
  package let method: HTTPRequest.Method
  /// Path and query.
  package let target: String
  /// The fields in their order, with names in lower case.
  package let fields: [(name: String, value: String)]
  /// The content.
  package let body: [UInt8]

  /// A message of these parts; nil where they could not stand in a request (RFC 9112 §3, RFC 9110 §5): a method or a
  /// field's name that is no token, a target with a blank, a value with a line break.
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

  /// The value of a field, several of one name joined by ", "; nil where there is none.
  subscript(name: HTTPField.Name) -> String? { self[name.canonicalName] }

  /// The same, by its name in lower case.
  package subscript(name: String) -> String? {
    var value: String?
    for field in fields where field.name == name {
      value = value.map { $0 + fieldSeparator(name) + field.value } ?? field.value
    }
    return value
  }

  /// The name that the client gave the request; nil where it gave none, none that is one, or several.
  fileprivate var requestID: RequestID? {
    let name = RequestID.fieldName.lowercased()
    let values = fields.filter { $0.name == name }.map(\.value)
    guard values.count == 1 else { return nil }
    return Array(values[0].utf8).withUnsafeBytes { RequestID(sent: $0) }
  }
}

/// A request that has come in the body of another one, on its way through the handler: what `Connection` is for others.
///
/// `@unchecked Sendable`: what changes is touched by one thread at a time. That is the carrier's first; where the
/// handler defers its answer, it lets go of it before it can be handled once more, and `resumptions` has it from then.
final class CarriedRequest: RequestHolder, @unchecked Sendable {
  let message: CarriedMessage
  let id: RequestID
  /// Where it came from: the sender of the carrier, or whom that names, if it is a trusted proxy.
  let address: ClientAddress
  /// Whether a trusted proxy says that its client used TLS.
  let isForwardedOverTLS: Bool
  /// The address of this machine that the carrier came to.
  let destination: ClientAddress?
  /// Whose share it counts for.
  var client: ClientAddress
  var body: RequestBody
  /// Whether it may be handled once more after its response was made.
  var keepsBody = false
  private(set) var isHandledAgain = false
  private(set) var outcome: (any Sendable)?
  /// What the access log will say of it; nil where there is none.
  let access: AccessEntry?
  private let server: ServerContext
  private let hasLeft: @Sendable () -> Bool
  private let answer: @Sendable (Response) -> Void

  /// The queue on which requests are handled once more: the thread that asks for it may hold locks.
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
    // Whom a proxy has named is no client of a socket of this machine.
    let forwarding = server.proxies.forwarding(by: sender, isLocal: server.isLocal && sender == .unknown) {
      message[$0]
    }
    address = forwarding?.origin ?? sender
    isForwardedOverTLS = forwarding?.isOverTLS ?? false
    client = server.limiter.client(at: address)
    // The client of the carrier holds its memory.
    body = RequestBody(bytes: message.body)
    access = server.accessLog.flatMap { [address] in $0.isWanted ? AccessEntry($0, client: address) : nil }
    access?.record.id = id
    access?.record.method = message.method.rawValue
  }

  /// Whether nobody waits for the answer any more.
  var isAbandoned: Bool { hasLeft() }

  /// Has the handler answer it, on the calling thread.
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

  /// Hands it to the handler once more, soon.
  private func resume(with outcome: (any Sendable)?) {
    Self.resumptions.async { [self] in
      // Those who have left, and those whom a server that stops has answered, must not be worked for.
      guard !isAbandoned else { return respond(server.handler.response(to: .draining)) }
      self.outcome = outcome
      handle()
    }
  }

  /// Gives the answer, unless it says that the request is to be handled once more. To be called once each time.
  func respond(_ response: Response) {
    if let retry = response.retry, keepsBody {
      (isHandledAgain, keepsBody) = (true, false)
      return resume(with: retry.outcome)
    }
    var response = server.held(response, of: client, at: address) { message.method }
    // What is sent from files or withheld answers those who read.
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
