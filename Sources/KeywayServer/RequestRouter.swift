import HTTPServer
import HTTPTypes
import KeyValueModel
import Logging
import Store
import Support

/// Finds the route of a request, has it answered, turns every problem into a response, and counts the responses.
final class RequestRouter: RequestHandler, Sendable {
  private let store: Store
  private let table: RouteTable
  private let placement: any RequestPlacement
  private let hosts: HostNames
  private let origins: Origins
  private let rates: RequestRateLimiter
  private let identification: Identification
  private let admission: Admission
  private let registry: StreamRegistry
  private let conditions: ConditionLog
  private let logger: Logger
  private let readiness: Readiness
  private static let variesWithAccept: FieldSection = [.vary: "Accept"]
  /// The counts of requests whose path has no route.
  private let otherCounts = RequestCounts(route: "other")

  /// Creates the router to the resources of a table, which `placement` answers for.
  init(
    _ table: RouteTable, placement: any RequestPlacement, store: Store, registry: StreamRegistry,
    readiness: Readiness, hosts: HostNames, origins: Origins, admission: Admission, rates: RequestRateLimiter,
    conditions: ConditionLog, logger: Logger
  ) {
    (self.table, self.placement, self.store, self.registry) = (table, placement, store, registry)
    (self.hosts, self.origins, self.admission, self.rates) = (hosts, origins, admission, rates)
    (self.conditions, self.logger, self.readiness) = (conditions, logger, readiness)
    identification = Identification(access: admission.access, origins: origins, readiness: readiness)
  }

  /// The counts of answered requests, by route and status.
  var counts: [RequestCounts] { table.routes.map(\.counts) + [otherCounts] }

  // MARK: RequestHandler

  /// Answers a request. This is the only place that catches problems, and that counts.
  func handle(_ request: borrowing Request) -> HandlerResponse {
    let watch = Stopwatch()
    // A request was judged by this state unless the response names a newer one. If another node forwards the request,
    // it was judged by that node's state, which may be newer, and which its client has seen.
    let revision = request.header(.keywayRequest) == nil ? store.revision : nil
    var route: Route?
    var requester = Requester.anybody(nil)
    let response: HandlerResponse
    do throws(Problem) {
      response = try self.response(to: request, &route, &requester)
    } catch {
      logger.debug("refused", metadata: ["code": "\(error.code.rawValue)", "route": "\(route?.pattern ?? "")"])
      response = .response(error.response)
    }
    let answer = Answer(
      method: request.method, address: request.address, counts: route?.counts ?? otherCounts,
      isNegotiated: route?.isNegotiated(request.method) ?? false,
      origin: origins.isEmpty ? nil : request.header(.origin),
      owner: StreamOwner(requester), isUnknown: requester.isUnknown && route?.audience != .everybody,
      revision: revision, watch: watch)
    return counted(response, answer)
  }

  /// Everything that is needed to finish and count a response.
  private struct Answer: Sendable {
    let method: HTTPRequest.Method
    /// The address that the request came from.
    let address: ClientAddress
    let counts: RequestCounts
    /// True if the response depends on the `Accept` of the request.
    let isNegotiated: Bool
    /// The origin of the page that a stream is for, if the response becomes one.
    let origin: String?
    /// The owner of a stream, if the response becomes one.
    let owner: StreamOwner?
    /// True for an anonymous request, while tokens are enabled, for a resource that is not everybody's.
    let isUnknown: Bool
    /// The revision of the store when the request began; nil if another node reports its own.
    let revision: Revision?
    /// The time since the request came.
    let watch: Stopwatch
  }

  private final class KeptAnswer: Sendable {
    let answer: Answer

    init(_ answer: Answer) { self.answer = answer }
  }

  private func counted(_ response: consuming HandlerResponse, _ answer: Answer) -> HandlerResponse {
    switch consume response {
    case .response(var response):
      settle(&response, answer)
      if response.reason != nil { noteRefusal(response, answer.address) }
      return .response(response)
    case .stream(let stream, let fields):
      return .stream(stream, fields: begun(stream, fields, answer))
    case .deferred(let start):
      // The closures share one copy.
      let kept = KeptAnswer(answer)
      return .deferred { completion in
        start(
          completion.preparing { [self] response in
            // The request is handled once more.
            if response.retry != nil { return response }
            var response = response
            settle(&response, kept.answer)
            // A client that has left is refused too, but not because anything is full.
            if response.reason != nil, !completion.isAbandoned { noteRefusal(response, kept.answer.address) }
            return response
          } willStream: { [self] stream, fields in
            begun(stream, fields, kept.answer)
          })
      }
    }
  }

  /// Turns a handler's response into the one that is sent, and counts it.
  private func settle(_ response: inout Response, _ answer: borrowing Answer) {
    if answer.isUnknown { AccessControl.hide(in: &response) }
    answer.counts.count(answer.method, status: response.status, after: answer.watch)
    complete(&response.fields, answer)
  }

  /// Counts a stream that has become the response, and returns its fields.
  private func begun(_ stream: EventStream, _ fields: FieldSection, _ answer: Answer) -> FieldSection {
    answer.counts.count(answer.method, status: .ok, after: answer.watch)
    if let owner = answer.owner { registry.own(stream.id, owner) }
    var fields = fields
    complete(&fields, answer)
    origins.add(to: &fields, for: answer.origin)
    return fields
  }

  private func complete(_ fields: inout FieldSection, _ answer: borrowing Answer) {
    name(answer.revision, in: &fields)
    // The response depends on the `Accept` of its request (RFC 9110 §12.5.5). No handler sets this field.
    if answer.isNegotiated { fields.append(contentsOf: Self.variesWithAccept) }
  }

  /// Names the revision by which a request was judged, if the response does not.
  private func name(_ revision: Revision?, in fields: inout FieldSection) {
    guard let revision, !fields.contains(.keywayCursor) else { return }
    fields.append(.keywayCursor, store.cursor(revision))
  }

  private func noteRefusal(_ response: Response, _ address: ClientAddress) {
    guard let reason = response.reason, let condition = ProblemCode(rawValue: reason)?.condition else { return }
    conditions.note(condition, client: address)
  }

  private func response(
    to request: borrowing Request, _ found: inout Route?, _ requester: inout Requester
  ) throws(Problem) -> HandlerResponse {
    let host = try host(of: request)
    let method = request.method
    if request.target == "*", method == .options { return .response(Response(status: .noContent)) }
    let target = try Target(request.target)
    guard let route = table.route(target.segments) else {
      try rates.take(request.client)
      // An invalid token is refused whatever it is sent for.
      _ = try identification.requester(of: request, nil, host: host)
      throw Problem(.notFound, "nothing is served under this path")
    }
    found = route
    request.note(route: route.pattern)
    if method == .options, !request.isCarried { return .response(capabilities(of: route, for: request)) }
    return try placement.respond(to: request, on: route) { request throws(Problem) in
      try resolve(request, route, target, host: host, &requester)
    }
  }

  /// Identifies the sender of a request to a resource, and the action that carries it out. Throws for a request that no
  /// node answers.
  private func resolve(
    _ request: borrowing Request, _ route: Route, _ target: Target, host: String?, _ requester: inout Requester
  ) throws(Problem) -> RequestContext {
    let method = request.method
    do throws(Problem) {
      if route.audience != .visitors { requester = try identification.requester(of: request, route, host: host) }
    } catch {
      // A client without a valid token is anonymous: its address is what is limited.
      if !route.isUnlimited, !request.isHandledAgain { try rates.take(request.client) }
      throw error
    }
    // From here on shares and limits are those of the identity, whatever its address.
    if let mark = requester.mark { request.note(client: mark.client) }
    if let subject = requester.subject { request.note(subject: subject) }
    if !route.isUnlimited, !request.isHandledAgain { try rates.take(request.client) }
    try admission.checkName(of: request, present: store.cursor(store.revision))
    guard var action = route.action(of: method) else {
      throw Problem(.methodNotAllowed, "\(method.rawValue) is not one of \(route.allow)").with(.allow, route.allow)
    }
    var isStream = false
    if method == .get || method == .head, !route.forms.isEmpty {
      let form = try Negotiation.form(of: request, available: route.forms)
      if form == .stream, let stream = route.stream { (action, isStream) = (stream, true) }
    }
    if !route.isAlwaysServed { try readiness.check() }
    return RequestContext(
      route: route, action: action, isStream: isStream, target: target, requester: requester, method: method)
  }

  /// Returns the name that a request is for: that of a target in absolute form, which must equal `Host`, because
  /// intermediaries may use either (RFC 9112 §3.2.2). Throws `misdirected-request` for a name that this server does not
  /// have.
  private func host(of request: borrowing Request) throws(Problem) -> String? {
    let (authority, header) = (Target.authority(of: request.target), request.header(.hostName))
    if let authority, let header, !HostNames.isSame(authority, header, isSecure: Target.isSecure(request.target)) {
      throw Problem(.misdirectedRequest, "the request target names '\(authority)', but Host names '\(header)'")
    }
    guard let host = authority ?? header else { return nil }
    guard hosts.contains(host) || HostNames.isLiteral(host, of: request.destination) else {
      let remedy = HostNames.setting(for: host).map { "; to answer to it, the setting names must have '\($0)'" } ?? ""
      throw Problem(.misdirectedRequest, "'\(host)' is not one of this server's names\(remedy)")
    }
    return host
  }

  /// Returns the response to `OPTIONS`, including preflights.
  private func capabilities(of route: Route, for request: borrowing Request) -> Response {
    var fields: FieldSection = [.allow: route.allow]
    fields[.acceptPatch] = route.acceptPatch
    if let origin = request.header(.origin), origins.isAllowed(origin),
      request.header(.accessControlRequestMethod) != nil
    {
      fields.append(contentsOf: Origins.preflight(methods: route.allow))
    }
    return Response(status: .noContent, fields: fields)
  }

  /// Adds the id of the request to a problem, and the fields that let the page of an allowed origin read the response.
  func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?) {
    response.name(request)
    if !origins.isEmpty { origins.add(to: &response.fields, for: origin()) }
  }

  /// Returns the response to a fault: one that the server finds before there is a request, or one that prevents a
  /// response.
  func response(to fault: RequestFault) -> Response {
    var response = problem(of: fault)
    name(store.revision, in: &response.fields)
    return response
  }

  private func problem(of fault: RequestFault) -> Response {
    switch fault {
    case .bodyTooLarge(let limit): Problem(.contentTooLarge, "the body is longer than \(limit) bytes").response
    case .headersTooLarge(let limit): Problem(.headersTooLarge, "the headers are longer than \(limit) bytes").response
    case .targetTooLong(let limit): Problem(.uriTooLong, "the request line is longer than \(limit) bytes").response
    case .malformed(let defect): Problem(.malformedRequest, defect.description).response
    case .unsupportedVersion: Problem(.unsupportedVersion, "only HTTP/1.0 and HTTP/1.1 are supported").response
    case .unsupportedTransferCoding: Problem(.notImplemented, "the only supported transfer coding is chunked").response
    case .encodedBody:
      Problem(.unsupportedMediaType, "Content-Encoding is not supported").with(.acceptEncoding, "identity").response
    case .memoryRefused(let refusal): Problem(refusal).response
    case .overloaded: Problem(.overloaded, "no descriptor is left for an event stream").response
    case .draining:
      Problem(.draining, "the server stopped before it had a response; the request may have been carried out").response
    case .unanswered: Problem(.internalError, "the request was dropped without a response").response
    }
  }
}

extension Response {
  /// Puts the id of its request into a problem, as its last member; other responses stay as they are.
  ///
  /// It is added to the bytes, because a problem is made, and kept for retries, where the request is not known.
  fileprivate mutating func name(_ request: RequestID) {
    guard status.code >= 400, fields[.contentType] == Problem.mediaType, body.suffix(2).elementsEqual("}\n".utf8) else {
      return
    }
    body.removeLast(2)
    var member = Array(#","requestId":"#.utf8)
    member.appendJSONString(request.text)
    // The response of another node, to which the request was forwarded, has the member already.
    if !body.suffix(member.count).elementsEqual(member) { body += member }
    body += "}\n".utf8
  }
}
