import Foundation
import HTTPTypes
import KeyValueModel
import KeywayServer
package import Store

/// The node that this one follows, as it answers.
package struct Leader: Sendable {
  /// Why it cannot be followed, or not now.
  package enum Refusal: Error, Sendable, CustomStringConvertible {
    /// There was no answer, or none that can be used; it may come.
    case fault(NodeFault)
    /// It has another history, or has forgotten what comes next: this node has to begin anew.
    case otherHistory(String)
    /// Its schema is another than the one that this node was given.
    case otherSchema(String)
    /// It asks who its clients are, and this node does not.
    case access(String)

    /// What is wrong, in a sentence.
    package var description: String {
      switch self {
      case .fault(let fault): fault.reason
      case .otherHistory(let reason), .otherSchema(let reason), .access(let reason): reason
      }
    }

    /// Does something with the node.
    fileprivate static func of<Result>(_ body: () throws(NodeFault) -> Result) throws(Refusal) -> Result {
      do throws(NodeFault) {
        return try body()
      } catch {
        throw .fault(error)
      }
    }
  }

  /// A node, as it describes itself.
  package struct Description: Sendable {
    /// Its epoch and the text of its schema.
    package let identity: JournalIdentity
    /// True if it asks who its clients are (`access.keys`).
    package let hasAccess: Bool
    /// The nodes that it knows, itself first.
    let nodes: [String]
  }

  let client: NodeClient
  private let token: NodeToken

  /// What has to come, again and again, while something is received.
  private static let silence = Duration.seconds(8)
  /// The most bytes of an answer that is held in memory: one record can be that long.
  private static let answerBytes = SnapshotFile.maximumBlock + (1 << 20)

  /// The node at an address; `tokenFile` holds the token that it is shown, if it wants one.
  package init(_ client: NodeClient, tokenFile: String) {
    self.client = client
    token = NodeToken(file: tokenFile)
  }

  /// Asks the node what it is.
  package func description() throws(Refusal) -> Description {
    let object = try json("/v1/nodes")
    guard let epoch = object["epoch"]?.asString, let schema = object["schema"]?.asString,
      case .array(let nodes) = object["nodes"]
    else { throw Self.strange }
    return Description(
      identity: JournalIdentity(epoch: epoch, schema: schema), hasAccess: object["access"] == .bool(true),
      nodes: nodes.compactMap(\.asString))
  }

  /// The reason why a node that does not ask who its clients are must not follow this one, which does.
  package var accessRefusal: Refusal {
    .access(
      "\(client.address) asks who its clients are (access.keys), and this node would serve everything that it has to "
        + "everyone. Set access.keys here, or access.open to true if that is intended")
  }

  /// Writes its snapshot into a file. False where it begins with the empty store, and the file is not made.
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

  /// The most bytes of the nodes that follow this one, as the other is told of them; more are left out.
  private static let belowBytes = 4_000

  /// Asks for the records after a revision of an epoch, with the digest there, for what changes with the nodes that the
  /// other one knows, and for whether it asks who its clients are. It is told the nodes that this node's directory has,
  /// and the digest of the revocations that this node has: others are told at once.
  func records(
    after revision: Revision, _ digest: JournalDigest, epoch: String, revocations: JournalDigest,
    _ directory: NodeDirectory
  ) throws(Refusal) -> (batch: RecordBatch, nodes: String?, hasAccess: Bool) {
    let name = directory.url.escaped
    let place = "epoch=\(epoch)&after=\(revision)&digest=\(String(digest.value, radix: 16))"
    var request = try request("/v1/nodes/records?\(place)&node=\(name)")
    // In a field, which a node of an earlier version passes over.
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

  /// The revocations that count there.
  func revocations() throws(Refusal) -> [Revocation] {
    let object = try json("/v1/nodes/revocations")
    guard case .array(let entries) = object["revocations"] else { throw Self.strange }
    var revocations: [Revocation] = []
    for entry in entries {
      guard let subject = entry.asObject?["sub"]?.asString, case .integer(let milliseconds) = entry.asObject?["before"]
      else { throw Self.strange }
      revocations.append(Revocation(subject: subject, milliseconds: milliseconds))
    }
    return revocations
  }

  /// Streams of this node are gone for good, by their numbers.
  func end(streams: some Sequence<UInt64>) throws(Refusal) {
    var request = try request("/v1/nodes/streams")
    request.method = HTTPRequest.Method.post.rawValue
    request.fields.append((HTTPField.Name.contentType.rawName, Body.json))
    request.body = Array(Value.object(["ended": .array(streams.map { .integer(Int64($0)) })]).json.utf8)
    _ = try send(request)
  }

  private func json(_ target: String) throws(Refusal) -> JSONObject {
    let answer = try send(request(target))
    guard let object = (try? Value(json: answer.body))?.asObject else { throw Self.strange }
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

  private static var strange: Refusal { .fault(NodeFault("the answer is not one of a node of this version")) }

  private static func refusal(_ answer: NodeAnswer, _ body: [UInt8]) -> Refusal {
    let problem = (try? Value(json: body))?.asObject
    let detail = problem?["detail"]?.asString ?? "no reason is given"
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

/// What a follower begins with: the identity of the store that it follows, and a file of its state.
package struct LeaderCopy: Sendable {
  /// The epoch and the schema.
  package let identity: JournalIdentity
  /// True if the node asks who its clients are.
  package let hasAccess: Bool
  /// The file; nil where it begins with the empty store.
  package let snapshotPath: String?

  /// Fetches a copy of what a node has into a directory that exists.
  ///
  /// - Parameters:
  ///   - schema: The text of the only schema that will do, if there is one: comments and layout may differ.
  ///   - mayHaveAccess: False if the node must not be one that asks who its clients are.
  /// - Throws: The reason why there is none; then no file is left.
  package static func fetch(
    from leader: Leader, into directory: String, schema: String?, mayHaveAccess: Bool
  ) throws(Leader.Refusal) -> LeaderCopy {
    let description = try leader.description()
    let (identity, hasAccess) = (description.identity, description.hasAccess)
    guard mayHaveAccess || !hasAccess else { throw leader.accessRefusal }
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: identity.schema) {
      throw .otherSchema(
        "its schema is another than this node was given: a follower has the schema of \(leader.client.address); start "
          + "it without --schema, or with that one")
    }
    let path = "\(directory)/joining.snapshot"
    guard try leader.writeSnapshot(to: path) else {
      return LeaderCopy(identity: identity, hasAccess: hasAccess, snapshotPath: nil)
    }
    do {
      // Read through: what was cut off or damaged on the way is found before anything depends on it.
      let file = try SnapshotFile(path: path)
      try file.read { _ in }
      guard file.header.epoch == identity.epoch, file.header.schema == identity.schema else {
        throw NodeFault("its store has become another meanwhile")
      }
    } catch {
      try? FileManager.default.removeItem(atPath: path)
      throw .fault(NodeFault("its snapshot is of no use: \(error)"))
    }
    return LeaderCopy(identity: identity, hasAccess: hasAccess, snapshotPath: path)
  }
}

extension String {
  /// The text as a part of a query or a list.
  fileprivate var escaped: String { addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
}
