import HTTPServer
import HTTPTypes
import KeyValueModel
import Logging
import Store
import Support

/// The way of a request to its handler: finds its route, makes a response of every problem, and counts what was
/// answered.
final class RequestRouter: RequestHandler, Sendable {
  private let store: Store
  private let node: Node
  let idempotency: IdempotencyStore
  private let hosts: HostNames
  private let access: AccessControl
  private let origins: Origins
  private let rates: RequestRateLimiter
  private let identification: Identification
  private let admission: Admission
  private let registry: StreamRegistry
  private let conditions: ConditionLog
  private let logger: Logger
  private let readiness: Readiness
  private let readings: Readings
  private let table: RouteTable
  private let passedWrites: PassedWriteHandlers
  /// What an answer says that depends on the `Accept` of its request (RFC 9110 §12.5.5). No handler says what its
  /// answers depend on.
  private static let negotiated = "Accept"
  /// Requests whose path has no route.
  private let otherCounts = RequestCounts(route: "other")

  /// The router to a store and its streams. `makeID` gives a new object id at each call.
  init(
    store: Store, node: Node, streams: Streams, hub: StreamHub, pages: PageStore,
    idempotency: IdempotencyStore, ledger: MemoryLedger, limits: RequestLimits, hosts: HostNames, access: AccessControl,
    origins: Origins, rates: RequestRateLimiter, random: @escaping @Sendable () -> UInt64,
    files: FileHandlers, registry: PrometheusRegistry, conditions: ConditionLog, logger: Logger,
    makeID: @escaping @Sendable () -> String
  ) {
    self.store = store
    self.node = node
    self.idempotency = idempotency
    self.hosts = hosts
    self.access = access
    self.origins = origins
    self.rates = rates
    self.registry = streams.registry
    admission = Admission(access: access, streams: streams.registry, service: node.service)
    self.conditions = conditions
    self.logger = logger
    readiness = Readiness(of: store)
    identification = Identification(access: access, origins: origins, readiness: readiness)
    let readings = Readings(limits, ledger: ledger)
    self.readings = readings
    // Streams that resume and live queries wait for their turn, each apart from the other.
    let streamLimits = streams.registry.services.limits
    let resumptions = OpeningQueue(label: "keyway.resumptions", limits: streamLimits, readiness: readiness)
    let queryOpenings = OpeningQueue(label: "keyway.queries", limits: streamLimits, readiness: readiness)
    passedWrites = PassedWriteHandlers(store: store, writes: node.writes, readings: readings)
    let writer = TransactionWriter(store: store, readings: readings, limits: limits)
    let description = DescriptionHandler()
    table = RouteTable(
      Handlers(
        objects: ObjectHandlers(
          store: store, writer: writer, readings: readings, limits: limits, streams: streams.registry, makeID: makeID),
        keyPaths: KeyPathHandlers(store: store, writer: writer, readings: readings, limits: limits, makeID: makeID),
        fetches: FetchHandler(store: store, pages: pages, readings: readings),
        transactions: TransactionHandler(
          schema: store.schema, writer: writer, limits: limits, streams: streams.registry, makeID: makeID),
        objectStreams: ObjectStreamHandlers(
          store: store, streams: streams.objects, openings: queryOpenings, resumptions: resumptions),
        queryStreams: QueryStreamHandler(store: store, streams: streams.queries, openings: queryOpenings),
        cells: CellHandlers(
          store: store, streams: streams.cells, openings: queryOpenings, resumptions: resumptions, readings: readings),
        streams: StreamHandlers(store: store, node: node, streams: streams.registry, readings: readings),
        journal: JournalHandler(store: store, streams: streams.journal, readings: readings, limits: limits),
        schema: SchemaHandlers(schema: store.schema), description: description,
        operations: OperationsHandlers(
          store: store, node: node, streams: streams.registry, hub: hub, ledger: ledger, readiness: readiness),
        metrics: MetricsHandler(
          store: store, streams: streams.registry, hub: hub, idempotency: idempotency, ledger: ledger,
          registry: registry),
        idempotency: IdempotentHandlers(store: idempotency, registry: registry, objects: store),
        sessions: SessionHandlers(access: access, store: store, node: node, readiness: readiness),
        revocations: RevocationHandlers(revocations: access.revocations, readings: readings),
        files: files,
        nodes: NodeHandlers(
          store: store, node: node, revocations: access.revocations, streams: streams.registry, readings: readings,
          files: files.openFiles)))
    description.describe(table.routes, schema: store.schema, access: access)
    let counts = table.routes.map(\.counts) + [otherCounts]
    registry.collect { registry in
      for counts in counts { counts.export(to: registry) }
      readings.export(to: registry)
      node.export(store, to: registry)
      registry.set(.openingStreams, ["queue": "resumptions"], to: resumptions.count)
      registry.set(.openingStreams, ["queue": "queries"], to: queryOpenings.count)
    }
  }

  /// From now on `/readyz` is `draining`, and all else as it was.
  func announceDraining() { readiness.announceDraining() }

  /// From now on requests are answered `draining`, but for those of operators.
  func beginDraining() {
    readiness.beginDraining()
    node.beginDraining()
  }

  /// Ends what is still being worked out. Called once nobody waits for it any more.
  func stop() { readings.stop() }

  /// Remembers the responses that were kept with commits, and the sessions that these began and ended; `now` is in
  /// milliseconds since 1970.
  func restore(_ attachments: [StoredAttachment], at now: Int64) {
    idempotency.restore(attachments, at: now)
    node.writes.restore(attachments)
    access.sessions.restore(attachments, at: now)
  }

  /// From now on writes are taken that other nodes pass on: what the store has recovered was restored.
  func takePassedWrites() { node.writes.begin(after: store.toldAfter) }

  // MARK: RequestHandler

  /// Answers a request; the one place that catches problems, and that counts.
  func handle(_ request: borrowing Request) -> HandlerResponse {
    let watch = Stopwatch()
    // What is not said to be judged by a newer state was judged by this one; where another node passes the request on,
    // by that one's, which may be newer: its client has seen that.
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
      owner: StreamOwner(requester), isUnknown: requester.isUnknown, revision: revision, watch: watch)
    return counted(response, answer)
  }

  /// What becomes of an answer, whatever it is.
  private struct Answer: Sendable {
    let method: HTTPRequest.Method
    /// Where the request came from.
    let address: ClientAddress
    let counts: RequestCounts
    /// Whether it depends on what the request accepts.
    let isNegotiated: Bool
    /// The page that a stream is for which becomes the answer.
    let origin: String?
    /// Whose a stream is that becomes the answer.
    let owner: StreamOwner?
    /// Whether a token might have been sent and was not.
    let isUnknown: Bool
    /// How far the store had come when the request began; nil where another node says so of itself.
    let revision: Revision?
    /// How long it has been on its way.
    let watch: Stopwatch
  }

  private func counted(_ response: consuming HandlerResponse, _ answer: Answer) -> HandlerResponse {
    switch response {
    case .response(var response):
      settle(&response, answer)
      if response.reason != nil { noteRefusal(response, answer.address) }
      return .response(response)
    case .postponed: return response
    case .stream(let stream, let fields):
      return .stream(stream, fields: begun(stream, fields, answer))
    case .deferred(let start):
      return .deferred { completion in
        start(
          completion.preparing { [self] response in
            // It is handled once more.
            if response.retry != nil { return response }
            var response = response
            settle(&response, answer)
            // Who has left is refused too, and nothing is full for that.
            if response.reason != nil, !completion.isAbandoned { noteRefusal(response, answer.address) }
            return response
          } willStream: { [self] stream, fields in
            begun(stream, fields, answer)
          })
      }
    }
  }

  /// Makes the response that is sent of a handler's, and counts it.
  private func settle(_ response: inout Response, _ answer: borrowing Answer) {
    if answer.isUnknown { hideAccess(in: &response) }
    answer.counts.count(answer.method, status: response.status, after: answer.watch)
    if answer.isNegotiated { response.fields[.vary] = Self.negotiated }
    name(answer.revision, in: &response.fields)
  }

  /// The fields of a stream that has become the answer.
  private func begun(_ stream: EventStream, _ fields: HTTPFields, _ answer: Answer) -> HTTPFields {
    answer.counts.count(answer.method, status: .ok, after: answer.watch)
    if let owner = answer.owner { registry.own(stream.id, owner) }
    var fields = fields
    if answer.isNegotiated { fields[.vary] = Self.negotiated }
    origins.add(to: &fields, for: answer.origin)
    name(answer.revision, in: &fields)
    return fields
  }

  /// Says by which state a request was judged, where that was not said.
  private func name(_ revision: Revision?, in fields: inout HTTPFields) {
    guard let revision, !fields.contains(.keywayCursor) else { return }
    fields[.keywayCursor] = store.cursor(revision).description
  }

  /// Without a token, what a rule refuses and what is not there are answered alike.
  private func hideAccess(in response: inout Response) {
    guard let code = response.reason.flatMap(ProblemCode.init), code.dependsOnAccess else { return }
    let cursor = response.fields[.keywayCursor]
    response = AccessControl.unauthenticated.response
    response.fields[.keywayCursor] = cursor
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
      // A bad token is one whatever it is sent for.
      _ = try identification.requester(of: request, nil, host: host)
      throw Problem(.notFound, "nothing is served under this path")
    }
    found = route
    request.note(route: route.pattern)
    try BatchHandler.check(request, route)
    let outcome = request.outcome as? PenPassing.Outcome
    if case .answer(let response)? = outcome { return .response(response) }
    if method == .options { return .response(capabilities(of: route, for: request)) }
    do throws(Problem) {
      if route.audience != .visitors { requester = try identification.requester(of: request, route, host: host) }
    } catch {
      // A client without a valid token is anonymous: its address is what is limited.
      if !route.isUnlimited, !request.isPostponed { try rates.take(request.client) }
      // A session that another node has begun may be known here once the state has come that the request names.
      let isOfCookie = !route.isAlwaysServed && request.header(.authorization) == nil
      if isOfCookie, let postponement = try node.postponement(of: request, store) { return postponement }
      throw error
    }
    // From here on shares and limits are those of the identity, from whatever address it comes.
    if let mark = requester.mark { request.note(client: mark.client) }
    if let subject = requester.subject { request.note(subject: subject) }
    if !route.isUnlimited, !request.isPostponed { try rates.take(request.client) }
    try admission.checkName(of: request, present: store.cursor(store.revision))
    guard var action = route.action(of: method) else {
      throw Problem(.methodNotAllowed, "\(method.rawValue) is none of \(route.allow)").with(.allow, route.allow)
    }
    var isStream = false
    if method == .get || method == .head, !route.forms.isEmpty {
      let form = try Negotiation.form(of: request, available: route.forms)
      if form == .stream, let stream = route.stream { (action, isStream) = (stream, true) }
    }
    if !route.isAlwaysServed {
      try readiness.check()
      if requester.identity != nil, route.audience != .nodes {
        try node.checkRevocations(within: access.options.staleSeconds)
      }
      if route.isForwarded, method != .get, method != .head, let forwarder = node.forwarder {
        return try forwarder.forward(request, route)
      }
      if !node.isAlone, admission.mayAsk(requester, on: route),
        let passed = try node.passing?.response(to: request, route, target, isStream: isStream)
      {
        return passed
      }
      if let postponement = try node.postponement(of: request, store) { return postponement }
      if route.isCommitted(by: method), let elsewhere = try atPeers(request, route, outcome) { return elsewhere }
    }
    var context = RequestContext(
      route: route, target: target, requester: requester, parameters: route.parameterNames(method, isStream))
    if let named = request.outcome as? NamedStreams { context.namedStreams = named }
    try admission.check(context)
    return try carryOut(request, context, outcome, action)
  }

  /// Returns the name that a request is for: that of a target in absolute form, which must be the `Host` too, since
  /// whatever passes the request on may go by either (RFC 9112 §3.2.2). Throws `misdirected-request` for one that is
  /// none of this server's.
  private func host(of request: borrowing Request) throws(Problem) -> String? {
    let (authority, header) = (Target.authority(of: request.target), request.header(.hostName))
    if let authority, let header, !HostNames.isSame(authority, header, isSecure: Target.isSecure(request.target)) {
      throw Problem(.misdirectedRequest, "the request target names '\(authority)', and Host '\(header)'")
    }
    guard let host = authority ?? header else { return nil }
    guard hosts.contains(host) || HostNames.isLiteral(host, of: request.destination) else {
      let remedy = HostNames.setting(for: host).map { "; to answer to it, the setting names must have '\($0)'" } ?? ""
      throw Problem(.misdirectedRequest, "'\(host)' is none of this server's names\(remedy)")
    }
    return host
  }

  /// Returns the answer to `OPTIONS`, a preflight among them.
  private func capabilities(of route: Route, for request: borrowing Request) -> Response {
    var fields: HTTPFields = [.allow: route.allow]
    fields[.acceptPatch] = route.acceptPatch
    if let origin = request.header(.origin), origins.isAllowed(origin),
      request.header(.accessControlRequestMethod) != nil
    {
      fields.append(contentsOf: Origins.preflight(methods: route.allow))
    }
    return Response(status: .noContent, fields: fields)
  }

  /// Has peers do what a write needs of them, or all of it; nil where this node is to carry it out.
  private func atPeers(
    _ request: borrowing Request, _ route: Route, _ outcome: PenPassing.Outcome?
  ) throws(Problem) -> HandlerResponse? {
    var givenBack: PenPassing.Turn?
    if case .givenBack(let turn)? = outcome { givenBack = turn }
    guard request.outcome == nil || givenBack != nil else { return nil }
    if let passed = try node.penPassing?.response(to: request, route, givenBack) { return passed }
    return try node.inquiry.response(to: request, route)
  }

  /// Has a handler answer a request: once, where nodes have a name for it.
  private func carryOut(
    _ request: borrowing Request, _ context: RequestContext, _ outcome: PenPassing.Outcome?,
    _ action: Route.Action
  ) throws(Problem) -> HandlerResponse {
    guard context.route.isCommitted(by: request.method) else { return try action.handle(request, context) }
    let turn =
      switch outcome {
      case .turn(let turn)?, .givenBack(let turn)?: turn
      case .answer?, nil: PenPassing.Turn(try PassedWrite(of: request), passedWrites.writes)
      }
    var context = context
    context.givenBack = node.penPassing?.givenBack(request, turn)
    guard let write = turn.write else { return try action.handle(request, context) }
    return try passedWrites.once(write, turn.doubt, request, context, action.handle)
  }

  /// A problem says which request it is of, and what is sent, whether it may be read by the page that asked.
  func finish(_ response: inout Response, of request: RequestID, from origin: () -> String?) {
    response.name(request)
    if !origins.isEmpty { origins.add(to: &response.fields, for: origin()) }
  }

  /// Answers what the server refuses before there is a request, and what it cannot answer afterwards.
  func response(to fault: RequestFault) -> Response {
    var response = problem(of: fault)
    name(store.revision, in: &response.fields)
    return response
  }

  private func problem(of fault: RequestFault) -> Response {
    switch fault {
    case .bodyTooLarge(let limit): Problem(.contentTooLarge, "a body has at most \(limit) bytes").response
    case .headersTooLarge(let limit): Problem(.headersTooLarge, "the headers have at most \(limit) bytes").response
    case .targetTooLong(let limit): Problem(.uriTooLong, "the request line has at most \(limit) bytes").response
    case .malformed(let defect): Problem(.malformedRequest, defect.description).response
    case .unsupportedVersion: Problem(.unsupportedVersion, "there is HTTP/1.1 and HTTP/1.0").response
    case .unsupportedTransferCoding: Problem(.notImplemented, "the only transfer coding is chunked").response
    case .encodedBody:
      Problem(.unsupportedMediaType, "a body has no Content-Encoding").with(.acceptEncoding, "identity").response
    case .memoryRefused(let refusal): Problem(refusal).response
    case .overloaded: Problem(.overloaded, "no descriptor is left for an event stream").response
    case .draining:
      Problem(.draining, "the server stops before it has the answer; the request may have been carried out").response
    case .unanswered: Problem(.internalError, "the request was let go without an answer").response
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
    // The answer of another node, to which the request was passed on, says so already.
    if !body.suffix(member.count).elementsEqual(member) { body += member }
    body += "}\n".utf8
  }
}
