import Dispatch
import HTTPTypes

/// A request that has come in the body of another one, on its way through the handler: what `Connection` is for others.
///
/// `@unchecked Sendable`: what changes is touched by one thread at a time. That is the carrier's first; where the
/// handler postpones the request, it lets go of it before the postponement can end, and `resumptions` has it from then.
final class CarriedRequest: @unchecked Sendable {
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
  private(set) var isPostponed = false
  private(set) var outcome: (any Sendable)?
  /// What the access log will say of it; nil where there is none.
  let access: AccessEntry?
  private let server: ServerContext
  private let hasLeft: @Sendable () -> Bool
  private let answer: @Sendable (Response) -> Void

  /// Where requests are handled that were postponed: who ends a postponement may be in the midst of anything.
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
    body = RequestBody(carried: message.body)
    access = server.accessLog.flatMap { [address] in $0.isWanted ? AccessEntry($0, client: address) : nil }
    access?.record.id = id
    access?.record.method = message.method.rawValue
  }

  /// Whether nobody waits for the answer any more.
  var isAbandoned: Bool { hasLeft() }

  /// Has the handler answer it, on the calling thread.
  func handle() {
    let response = server.handler.handle(Request(self, ledger: server.ledger))
    if case .postponed = response { isPostponed = true } else if !keepsBody { body.clear() }
    switch response {
    case .response(let response): respond(response)
    case .deferred(let work): work(Completion(self, handler: server.handler))
    case .postponed(let wait): wait(Postponement(self))
    case .stream(let stream, _):
      server.hub.abandon(stream)
      respond(server.handler.response(to: .unanswered))
    }
  }

  /// The postponement is over: it is handled once more, soon.
  func resume(with outcome: (any Sendable)?) {
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
      isPostponed = true
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
