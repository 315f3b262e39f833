import Foundation
import HTTPTypes
import KeyValueModel
import KeywayServer
package import Store

/// A client's view of the node that this one follows.
package struct Leader: Sendable {
  /// The reason why the node cannot be followed, or not now.
  package enum Refusal: Error, Sendable, CustomStringConvertible {
    /// There was no usable answer; a later attempt may succeed.
    case fault(NodeFault)
    /// It has another history, or no longer has the next records: this node has to start again from a copy.
    case otherHistory(String)
    /// Its schema differs from the one that this node was given.
    case otherSchema(String)
    /// It authenticates clients, and this node does not.
    case access(String)

    /// A sentence that describes what is wrong.
    package var description: String {
      switch self {
      case .fault(let fault): fault.reason
      case .otherHistory(let reason), .otherSchema(let reason), .access(let reason): reason
      }
    }

    /// Runs `body`, and turns a `NodeFault` into a refusal.
    fileprivate static func of<Result>(_ body: () throws(NodeFault) -> Result) throws(Refusal) -> Result {
      do throws(NodeFault) {
        return try body()
      } catch {
        throw .fault(error)
      }
    }
  }

  /// The description that a node gives of itself.
  package struct Description: Sendable {
    /// Its epoch and the text of its schema.
    package let identity: JournalIdentity
    /// True if it authenticates clients (`access.keys`).
    package let hasAccess: Bool
    /// The nodes that it knows, itself first.
    let nodes: [String]
  }

  let client: NodeClient
  private let token: NodeToken

  /// The longest time without any data while an answer is received.
  private static let silence = Duration.seconds(8)
  /// The maximum size of an answer that is held in memory, in bytes: one record can be that long.
  private static let answerBytes = SnapshotFile.maximumBlock + (1 << 20)

  /// Creates a view of the node of a client; `tokenFile` holds the token that is sent to it, if it requires one.
  package init(_ client: NodeClient, tokenFile: String) {
    self.client = client
    token = NodeToken(file: tokenFile)
  }

  /// Fetches the node's description.
  package func description() throws(Refusal) -> Description {
    let object = try json("/v1/nodes")
    guard let epoch = object["epoch"]?.asString, let schema = object["schema"]?.asString,
      case .array(let nodes) = object["nodes"]
    else { throw Self.malformedResponse }
    return Description(
      identity: JournalIdentity(epoch: epoch, schema: schema), hasAccess: object["access"] == .bool(true),
      nodes: nodes.compactMap(\.asString))
  }

  /// The refusal of a node that does not authenticate clients to follow this one, which does.
  package var accessRefusal: Refusal {
    .access(
      "\(client.address) authenticates its clients (access.keys), and this node would serve all its data to "
        + "everyone. Set access.keys here, or access.open to true if that is intended")
  }

  /// Writes its snapshot into a file. Returns false, and leaves no file, if the node's history begins with the empty
  /// store.
  package func writeSnapshot(to path: String) throws(Refusal) -> Bool {
    guard FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600]),
      let file = FileHandle(forWritingAtPath: path)
    else { throw .fault(NodeFault("\(path) cannot be written", isUnsent: true)) }
    defer { try? file.close() }
    let request = try request("/v1/nodes/snapshot")
    var refusal: [UInt8] = []
    let answer: NodeAnswer
    do throws(NodeFault) {
      answer = try client.send(request, silence: Self.silence) { piece throws(NodeFault) in
        if refusal.count < 1_000 { refusal += piece.prefix(1_000) }
        do {
          try file.write(contentsOf: Data(piece))
        } catch {
          throw NodeFault("\(path) cannot be written: \(error)")
        }
      }
    } catch {
      try? FileManager.default.removeItem(atPath: path)
      throw .fault(error)
    }
    guard answer.status == 200 else {
      try? FileManager.default.removeItem(atPath: path)
      if answer.status == 204 { return false }
      throw Self.refusal(answer, refusal)
    }
    return true
  }

  /// The maximum size of the list of nodes that follow this one, as it is sent to the leader, in bytes; further nodes
  /// are left out.
  private static let belowBytes = 4_000

  /// Requests the records after a revision of an epoch, with the digest there. Also returns the digest of the nodes
  /// that the leader knows, if it says so, and true if it authenticates clients. The request states the nodes in this
  /// node's directory, and the digest of this node's revocations: if the leader's differ, it answers at once.
  func records(
    after revision: Revision, _ digest: JournalDigest, epoch: String, revocations: JournalDigest,
    _ directory: NodeDirectory
  ) throws(Refusal) -> (batch: RecordBatch, nodes: String?, hasAccess: Bool) {
    let name = directory.url.escaped
    let place = "epoch=\(epoch)&after=\(revision)&digest=\(String(digest.value, radix: 16))"
    var request = try request("/v1/nodes/records?\(place)&node=\(name)")
    // Sent in a field, which a node of an earlier version ignores.
    request.fields.append((HTTPField.Name.keywayRevocations.rawName, String(revocations.value, radix: 16)))
    var below = ""
    for name in directory.below.map(\.escaped) where below.utf8.count + name.utf8.count < Self.belowBytes {
      below += below.isEmpty ? name : ",\(name)"
    }
    if !below.isEmpty { request.fields.append((HTTPField.Name.keywayNodes.rawName, below)) }
    let answer = try send(request)
    let batch = try Refusal.of { () throws(NodeFault) in try RecordBatch(answer.body, after: revision, digest) }
    let hasAccess = answer[HTTPField.Name.keywayAccess.rawName] != nil
    return (batch, answer[HTTPField.Name.keywayNodes.rawName], hasAccess)
  }

  /// Fetches the revocations that apply on the leader.
  func revocations() throws(Refusal) -> [Revocation] {
    let object = try json("/v1/nodes/revocations")
    guard case .array(let entries) = object["revocations"] else { throw Self.malformedResponse }
    var revocations: [Revocation] = []
    for entry in entries {
      guard let subject = entry.asObject?["sub"]?.asString, case .integer(let milliseconds) = entry.asObject?["before"]
      else { throw Self.malformedResponse }
      revocations.append(Revocation(subject: subject, milliseconds: milliseconds))
    }
    return revocations
  }

  /// Reports that streams of this node are gone for good, by their numbers.
  func end(streams: some Sequence<UInt64>) throws(Refusal) {
    var request = try request("/v1/nodes/streams")
    request.method = HTTPRequest.Method.post.rawValue
    request.fields.append((HTTPField.Name.contentType.rawName, Body.json))
    request.body = Array(Value.object(["ended": .array(streams.map { .integer(Int64($0)) })]).json.utf8)
    _ = try send(request)
  }

  private func json(_ target: String) throws(Refusal) -> JSONObject {
    let answer = try send(request(target))
    guard let object = (try? Value(json: answer.body))?.asObject else { throw Self.malformedResponse }
    return object
  }

  private func send(_ request: NodeRequest) throws(Refusal) -> NodeAnswer {
    let answer = try Refusal.of { () throws(NodeFault) in
      try client.send(request, silence: Self.silence, limit: Self.answerBytes)
    }
    guard answer.status == 200 else { throw Self.refusal(answer, answer.body) }
    return answer
  }

  private func request(_ target: String) throws(Refusal) -> NodeRequest {
    var request = NodeRequest("GET", target)
    request.fields += try Refusal.of { () throws(NodeFault) in try token.fields }
    return request
  }

  private static var malformedResponse: Refusal {
    .fault(NodeFault("the answer is not that of a node of this version"))
  }

  private static func refusal(_ answer: NodeAnswer, _ body: [UInt8]) -> Refusal {
    let problem = (try? Value(json: body))?.asObject
    let detail = problem?["detail"]?.asString ?? "no reason given"
    let code = problem?["type"]?.asString ?? ""
    if code.hasSuffix("/\(ProblemCode.otherHistory.rawValue)")
      || code.hasSuffix("/\(ProblemCode.unusableCursor.rawValue)")
    {
      return .otherHistory(detail)
    }
    let remedy = code.hasSuffix("/\(ProblemCode.notFound.rawValue)") ? "; set nodes.followers to true there" : ""
    return .fault(NodeFault("it answers \(answer.status): \(detail)\(remedy)"))
  }
}

/// The starting point of a follower: the identity of the store that it follows, and a file with its state.
package struct LeaderCopy: Sendable {
  /// The epoch and the schema.
  package let identity: JournalIdentity
  /// True if the node authenticates clients.
  package let hasAccess: Bool
  /// The path of the snapshot; nil if the history begins with the empty store.
  package let snapshotPath: String?

  /// Fetches a copy of a node's state into an existing directory.
  ///
  /// - Parameters:
  ///   - schema: The text of the only acceptable schema, or nil; comments and layout may differ.
  ///   - mayHaveAccess: False if the node must not be one that authenticates clients.
  /// - Throws: The reason why there is no copy; then no file is left.
  package static func fetch(
    from leader: Leader, into directory: String, schema: String?, mayHaveAccess: Bool
  ) throws(Leader.Refusal) -> LeaderCopy {
    let description = try leader.description()
    let (identity, hasAccess) = (description.identity, description.hasAccess)
    guard mayHaveAccess || !hasAccess else { throw leader.accessRefusal }
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: identity.schema) {
      throw .otherSchema(
        "its schema differs from the one given to this node: a follower has the schema of \(leader.client.address); "
          + "start it without --schema, or with that one")
    }
    let path = "\(directory)/joining.snapshot"
    guard try leader.writeSnapshot(to: path) else {
      return LeaderCopy(identity: identity, hasAccess: hasAccess, snapshotPath: nil)
    }
    do {
      // Read it completely: truncation and damage in transit are found before anything depends on it.
      let file = try SnapshotFile(path: path)
      try file.read { _ in }
      guard file.header.epoch == identity.epoch, file.header.schema == identity.schema else {
        throw NodeFault("its store has been replaced meanwhile")
      }
    } catch {
      try? FileManager.default.removeItem(atPath: path)
      throw .fault(NodeFault("its snapshot is unusable: \(error)"))
    }
    return LeaderCopy(identity: identity, hasAccess: hasAccess, snapshotPath: path)
  }
}

extension String {
  /// The text, percent-encoded for use in a query or a list.
  fileprivate var escaped: String { addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
}
