import Cluster
import Dispatch
import Foundation
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support
import TestKit
import Testing

@testable import KeywayServer

/// Sessions that a commit begins or ends between the resolution of their request and its response.
@Suite("A session that changes while its request is judged", .timeLimit(.minutes(60)))
struct StaleIdentityTests {
  enum Kind: CaseIterable {
    case single, leader

    var options: any NodeOptions {
      guard self == .leader else { return SingleNode.Options() }
      var options = ClusterOptions()
      options.followers = true
      return options
    }
  }

  /// A server with a node of this kind, which commits `write` once, right after the next request is resolved.
  private final class World {
    let write = Locked<Sessions.Write?>(nil)
    let guarded: GuardedServer

    init(_ kind: Kind) throws {
      let options = InterruptedNode.Options(base: kind.options, write: write)
      guarded = try GuardedServer(objects: []) { $0.node = options }
    }

    /// Returns the status of a read with a session and the cursor of the commit that happens meanwhile.
    func status(_ secret: SessionSecret, while write: Sessions.Write) throws -> Int {
      let store = guarded.server.server.store
      let fields = [
        "Cookie": "\(SessionCookie.name)=\(secret.text)",
        "Keyway-Cursor": Cursor(epoch: store.epoch, revision: store.revision + 1).description,
      ]
      self.write.withLock { $0 = write }
      return try guarded.client.send("GET", "/v1/objects/Note", fields).status
    }
  }

  @Test("One that ends meanwhile, by the commit that the request names, is refused", arguments: Kind.allCases)
  func ending(_ kind: Kind) throws {
    let world = try World(kind)
    let begun = try world.guarded.client.must("POST", "/v1/session", world.guarded.admin)
    let secret = try #require(begun["Set-Cookie"].flatMap(SessionCookie.secret(set:)))
    #expect(try world.status(secret, while: .end(secret.digest)) == 401)
  }

  @Test("One that begins meanwhile, by the commit that the request names, is good at a node")
  func beginning() throws {
    let world = try World(.leader)
    let secret = SessionSecret()
    let identity = try world.guarded.identity(of: "root", roles: ["keyway-admin"])
    #expect(try world.status(secret, while: .begin(SessionRecord(secret.digest, of: identity))) == 200)
  }
}

extension GuardedServer {
  /// The identity that a token proves.
  fileprivate func identity(of subject: String, roles: [String]) throws -> Identity {
    let keys = try KeySet(json: Array(Data(contentsOf: URL(filePath: path))))
    let verifier = TokenVerifier(keys: keys, issuer: nil, audience: nil, leeway: 0, longestLife: 1e6)
    return try verifier.verify(token(subject, roles: roles), now: Date().timeIntervalSince1970)
  }
}

/// A node that commits a change of the sessions right after a request is resolved.
private struct InterruptedNode: Node {
  struct Options: NodeOptions {
    let base: any NodeOptions
    let write: Locked<Sessions.Write?>

    func makeNode(at site: NodeSite) throws -> any Node { InterruptedNode(base: try base.makeNode(at: site), write) }
  }

  private struct Placement: RequestPlacement {
    let base: any RequestPlacement
    let interrupt: @Sendable () -> Void

    func respond(
      to request: borrowing Request, on route: Route,
      _ resolve: (borrowing Request) throws(Problem) -> RequestContext
    ) throws(Problem) -> HandlerResponse {
      try base.respond(to: request, on: route) { request throws(Problem) in
        defer { interrupt() }
        return try resolve(request)
      }
    }
  }

  let base: any Node
  private let write: Locked<Sessions.Write?>

  init(base: any Node, _ write: Locked<Sessions.Write?>) { (self.base, self.write) = (base, write) }

  func attach(
    to parts: ServerParts, _ admission: Admission, _ conditions: ConditionLog,
    restore: @escaping @Sendable ([StoredAttachment]) -> Void
  ) -> any RequestPlacement {
    let base = base.attach(to: parts, admission, conditions, restore: restore)
    return Placement(base: base) { [store = parts.store, sessions = parts.access.sessions, write] in
      let write = write.withLock { write in
        defer { write = nil }
        return write
      }
      if let write { Self.commit(write, store, sessions) }
    }
  }

  /// Commits a change as from another node's record: the sessions have it before the commit is published.
  private static func commit(_ write: Sessions.Write, _ store: Store, _ sessions: Sessions) {
    let done = DispatchSemaphore(value: 0)
    let attachment: @Sendable (Commit) -> [UInt8] = { commit in
      let bytes = sessions.prepare(write, at: commit.revision).bytes
      sessions.conclude(write, isDone: true)
      return bytes
    }
    let isAccepted = store.submit(Transaction([]), attachment: attachment) { _, _, _ in done.signal() }
    if isAccepted { done.wait() }
  }

  var url: String { base.url }
  var streamNumbers: StreamNumbers? { base.streamNumbers }
  var takesForwardedWrites: Bool { base.takesForwardedWrites }
  var toleratesRefusals: Bool { base.toleratesRefusals }
  func routes(in parts: ServerParts) -> [Route] { base.routes(in: parts) }
  func restore(_ attachments: [StoredAttachment]) { base.restore(attachments) }
  func recovered(_ store: Store) { base.recovered(store) }
  func start(_ store: Store) { base.start(store) }
  func note(_ notice: StoreNotice) { base.note(notice) }
  func reached(_ revision: Revision) { base.reached(revision) }
  func streamEnded(_ id: StreamID) { base.streamEnded(id) }
  func endLeases(_ store: Store, _ streams: StreamRegistry) { base.endLeases(store, streams) }
  func forward(
    _ request: borrowing Request, on route: Route, reading names: [HTTPField.Name]
  ) throws(Problem) -> HandlerResponse? { try base.forward(request, on: route, reading: names) }
  func refreshed(for request: borrowing Request, _ store: Store) -> HandlerResponse? {
    base.refreshed(for: request, store)
  }
  func checkHearing() throws(Problem) { try base.checkHearing() }
  func status(_ store: Store) -> JSONObject { base.status(store) }
  func export(_ store: Store, to registry: PrometheusRegistry) { base.export(store, to: registry) }
  func beginDraining() { base.beginDraining() }
  func stop() { base.stop() }
}
