import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import KeywayServer
import Store
import Support

/// The handlers of requests by other nodes: for this node's description, for a copy to begin with, and for the records
/// after it.
struct NodeHandlers: Sendable {
  let store: Store
  let node: ClusterNode
  let revocations: Revocations
  let streams: StreamRegistry
  let readings: Readings
  let files: OpenFiles

  /// The routes that this node has for other nodes. It answers 404 for the ones that it does not serve, as for
  /// nonexistent resources, so that no client can pose as a node.
  var routes: [Route] {
    var routes: [Route] = []
    if node.options.followers {
      routes += [
        Route("/v1/nodes", [.get: identity], audience: .nodes),
        Route("/v1/nodes/snapshot", [.get: snapshot], form: nil, audience: .nodes),
        Route("/v1/nodes/records", [.get: records], form: nil, isUnlimited: true, audience: .nodes),
        Route("/v1/nodes/revocations", [.get: revocationList], audience: .nodes),
        Route("/v1/nodes/streams", [.post: end], audience: .nodes, isForwarded: true),
      ]
    }
    if node.takesForwardedWrites {
      let batches = BatchHandler(journal: node.journal)
      routes.append(Route("/v1/nodes/writes", [.post: batches.writes], form: nil, audience: .nodes))
    }
    // Objects can be bound to the streams of any node, including a follower's.
    routes.append(Route("/v1/nodes/streams/{stream}", [.get: stream], audience: .streams))
    return routes
  }

  private static let octets = "application/octet-stream"
  /// The maximum number of records that are read at a time.
  private static let chunkRecords = 4_096
  /// The maximum size of these records, in bytes, unless a single one is larger.
  private static let chunkBytes = 8 << 20

  /// `/v1/nodes`: the epoch, the schema, whether this node authenticates clients, the revision that it has reached, and
  /// the nodes that it knows.
  func identity(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let identity = store.journal.identity
    return .response(
      .json([
        "epoch": .string(identity.epoch), "schema": .string(identity.schema), "node": .string(node.url),
        "access": .bool(node.hasAccess),
        "revision": .integer(Int64(store.revision)), "nodes": .array(node.directory.urls.map { .string($0) }),
      ]))
  }

  /// `/v1/nodes/snapshot`: a file of the state from which the journal's history continues; 204 if that is the empty
  /// store.
  func snapshot(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    guard let lease = files.lease(for: request.client) else {
      throw Problem(.overloaded, "as many files are being sent as files.open and files.openPerClient allow")
    }
    return .deferred { [self, client = request.client] completion in
      readings.perform(for: client, completion) {
        do {
          completion.respond(try snapshot(lease))
        } catch let problem as Problem {
          completion.respond(problem.response)
        } catch {
          completion.respond(Problem(.storeUnavailable, "no snapshot is available: \(error)").response)
        }
      }
    }
  }

  private func snapshot(_ lease: OpenFiles.Lease) throws -> Response {
    let journal = store.journal
    // Records after the copy are kept while it is fetched.
    let copy = node.followers.beginCopy(after: journal.bounds.base)
    do {
      // A compaction may delete the file that was found; an open file stays readable.
      for _ in 0..<5 {
        guard let snapshot = try Recovery.base(of: journal, through: store.revision, store.limits) else { break }
        guard let path = journal.file(of: snapshot) else { break }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { continue }
        node.followers.note(copy, of: snapshot.revision)
        return try Self.response(descriptor, lease)
      }
      guard journal.bounds.base > 0 else {
        node.followers.note(copy, of: 0)
        return Response(status: .noContent)
      }
      return try made(copy, lease)
    } catch {
      node.followers.end(copy)
      throw error
    }
  }

  /// Returns a snapshot of the present state, for a journal without files.
  private func made(_ copy: Followers.CopyID, _ lease: OpenFiles.Lease) throws -> Response {
    let snapshot = store.snapshot
    node.followers.note(copy, of: snapshot.revision)
    let identity = store.journal.identity
    guard let digest = try store.journal.digest(at: snapshot.revision) else {
      throw Problem(.storeUnavailable, "the journal has advanced meanwhile; try again")
    }
    let path = FileManager.default.temporaryDirectory.appending(path: "keyway-\(UUID().uuidString).snapshot").path
    defer { unlink(path) }
    var encoder = SnapshotEncoder(snapshot.state) { [store] in store.attachments(upTo: snapshot.revision) }
    try SnapshotFile.write(
      SnapshotFile.Header(
        epoch: identity.epoch, revision: snapshot.revision, digest: digest,
        milliseconds: SystemClock.epochMilliseconds, schema: identity.schema), to: path
    ) { encoder.nextBlock() }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Problem(.storeUnavailable, "the snapshot cannot be read back") }
    return try Self.response(descriptor, lease)
  }

  /// Returns a response with an open file, of which it takes ownership.
  private static func response(_ descriptor: Int32, _ lease: OpenFiles.Lease) throws -> Response {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      close(descriptor)
      throw Problem(.storeUnavailable, "the snapshot cannot be examined")
    }
    var response = Response(status: .ok, fields: [.contentType: octets])
    response.file = FileContent(descriptor: descriptor, offset: 0, count: Int(status.st_size), lease: lease)
    return response
  }

  /// `/v1/nodes/records?epoch=…&after=…&digest=…&node=…`: the records after a revision. Waits briefly for a record, or
  /// for revocations that differ from those of `Keyway-Revocations`.
  func records(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try context.checkParameters()
    let (after, digest) = try position(target)
    guard let name = target["node"], !name.isEmpty, name.utf8.count <= Followers.nameBytes else {
      throw Problem(
        .malformedQuery, "node must be the address of the requesting node, of at most \(Followers.nameBytes) bytes")
    }
    switch node.followers.note(name, at: after, below: below(request.header(.keywayNodes))) {
    case .known: break
    // All followers learn of it at once.
    case .new: node.pollers.endAll()
    case .refused: throw Problem(.overloaded, "too many nodes follow this one: see nodes.followersMaximum")
    }
    let client = request.client
    let hasRevocations = try request.header(.keywayRevocations).map { text throws(Problem) in
      try Self.digest(text) == revocations.digest
    }
    if after >= store.revision, hasRevocations ?? true, !request.isHandledAgain, node.pollers.hasRoom(for: client) {
      request.keepBody()
      return .deferred { [node, store] completion in
        node.pollers.add(of: client, until: after + 1, present: { store.revision }) { completion.handleAgain() }
      }
    }
    // Without records nothing has to be read, so that the next request arrives at once.
    if after == store.revision { return .response(try response([], after: after, digest)) }
    return try readings.response(to: request, isLong: true) { [self] budget throws(Problem) in
      let records = try read(after: after)
      let response = try response(records, after: after, digest)
      try budget.reserve(response.body)
      return response
    }
  }

  /// Returns the nodes that follow the requesting node.
  private func below(_ header: String?) -> [String] {
    guard let header else { return [] }
    return header.split(separator: ",").prefix(node.options.followersMaximum).compactMap { name in
      String(name).removingPercentEncoding.flatMap { $0.utf8.count <= Followers.nameBytes ? $0 : nil }
    }
  }

  /// Returns the position of the requesting node. Throws `other-history` if this journal does not have that position.
  private func position(_ target: Target) throws(Problem) -> (Revision, JournalDigest) {
    guard let after = target["after"].flatMap({ Revision($0) }), let text = target["digest"],
      let epoch = target["epoch"]
    else { throw Problem(.malformedQuery, "epoch, after and digest must state the position of the requesting node") }
    let digest = try Self.digest(text)
    guard epoch == store.epoch else {
      throw Problem(.otherHistory, "the epoch of this node is \(store.epoch), not '\(epoch)'")
    }
    let journal = store.journal
    let present = store.revision
    guard after <= present else {
      if node.following != nil {
        throw Problem(.behind, "this node follows another, and has reached only revision \(present)")
      }
      throw Problem(.otherHistory, "this node is at revision \(present) and has never been at \(after)")
    }
    let own: JournalDigest
    do throws(JournalError) {
      guard let found = try journal.digest(at: after) else { throw .compacted(base: journal.bounds.base) }
      own = found
    } catch {
      throw problem(error)
    }
    guard own == digest else {
      throw Problem(.otherHistory, "revision \(after) belongs to a different history; the stores have diverged")
    }
    return (after, digest)
  }

  private static func digest(_ text: String) throws(Problem) -> JournalDigest {
    guard let value = UInt64(text, radix: 16) else {
      throw Problem(.malformedQuery, "'\(text)' is not a digest of 1 to 16 hexadecimal digits")
    }
    return JournalDigest(value: value)
  }

  /// `/v1/nodes/revocations`: all revocations, with their times in milliseconds since 1970.
  func revocationList(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return try readings.response(to: request, isLong: revocations.count > 1_000) {
      [revocations] budget throws(Problem) in
      let entries = revocations.all().map { revocation in
        Value.object(["sub": .string(revocation.subject), "before": .integer(revocation.milliseconds)])
      }
      return try Response.json(["revocations": .array(entries)], within: budget)
    }
  }

  private func read(after: Revision) throws(Problem) -> [JournalRecord] {
    do throws(JournalError) {
      return Array(
        try store.journal.records(
          after: after, through: store.revision, limit: Self.chunkRecords, bytes: Self.chunkBytes))
    } catch {
      throw problem(error)
    }
  }

  private func response(
    _ records: [JournalRecord], after: Revision, _ digest: JournalDigest
  ) throws(Problem) -> Response {
    let batch = RecordBatch(
      newest: max(node.newest(from: store.revision), after), silenceMilliseconds: node.silenceMilliseconds,
      revocations: revocations.digest, records: records)
    var fields: FieldSection = [.contentType: Self.octets, .keywayNodes: node.directory.digest]
    if node.hasAccess { fields[.keywayAccess] = "keys" }
    return Response(status: .ok, fields: fields, body: batch.encoded(after: digest))
  }

  private func problem(_ error: JournalError) -> Problem {
    switch error {
    case .compacted(let base): Problem(.unusableCursor, "the journal begins after revision \(base)")
    default: Problem(.storeUnavailable, "the journal cannot be read: \(store.journal.publicReason(error))")
    }
  }
}

// MARK: - Streams

/// The handlers of requests about streams that objects are bound to.
extension NodeHandlers {
  /// `GET /v1/nodes/streams/{stream}`: the number of a stream of this node that exists for the requester.
  func stream(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    guard let id = streams.services.names.id(of: context[.stream]), streams.exists(id),
      context.requester.mayUse(id, of: streams)
    else { throw StreamRegistry.unknownStream }
    return .response(.json(["number": .integer(Int64(id.number))]))
  }

  /// `POST /v1/nodes/streams`: reports streams of the requesting node that are gone for good, by their numbers. Answers
  /// with the number of them that objects were bound to.
  func end(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    let body = try Body.object(of: request)
    guard case .array(let elements)? = body["ended"], body.members.count == 1, elements.count <= StreamEnds.most else {
      throw Problem(
        .invalidValue, "the body must be {\"ended\":[…]} with at most \(StreamEnds.most) numbers of streams")
    }
    var ended: Set<UInt64> = []
    for element in elements {
      guard case .integer(let number) = element, number > 0 else {
        throw Problem(.invalidValue, "'ended' has \(element.json), which is not the number of a stream")
      }
      ended.insert(UInt64(number))
    }
    return .response(.json(["ended": .integer(Int64(StreamLeases(of: store).end(ended)))]))
  }
}
