import Foundation
import KeyValueModel
import TestKit

/// Peers: several processes of `keyway serve` that keep their journal in one PostgreSQL database.
final class PeerGroup {
  let postgres: PostgresServer
  let database: String
  private(set) var peers: [ServerProcess] = []
  private let settings: [String: String]

  /// Starts so many peers of the example, on a database of their own.
  init(_ count: Int, on postgres: PostgresServer? = nil, settings: [String: String] = [:]) throws {
    self.postgres = try postgres ?? .shared()
    database = try self.postgres.makeDatabase()
    self.settings = settings
    for _ in 0..<count { peers.append(try start()) }
  }

  /// One more process on the same database, with these settings besides those of the group; `port` is where it reaches
  /// the database, where there is something before it.
  func start(_ changes: [String: String] = [:], by port: UInt16? = nil) throws -> ServerProcess {
    let named = settings.merging(changes) { _, given in given }
    let name = database.split(separator: "/").last.map(String.init) ?? ""
    let server = try ServerProcess("--journal", postgres.address(of: name, port: port), settings: named)
    let isReady = Deadline().awaits { (try? server.client.send("GET", "/readyz"))?.status == 200 }
    guard isReady else { throw LoopbackError("a peer is not ready:\n\(server.child.errors)") }
    return server
  }

  /// Ends a peer at once.
  func kill(_ index: Int) throws {
    peers[index].child.send(SIGKILL)
    _ = try peers[index].child.exitStatus()
  }

  /// Ends a peer at once, and starts another in its place.
  func replace(_ index: Int) throws {
    try kill(index)
    peers[index] = try start()
  }

  /// Starts one more, with these settings besides those of the group, which reaches the database by a port.
  func add(_ changes: [String: String], by port: UInt16? = nil) throws {
    peers.append(try start(changes, by: port))
  }

  subscript(index: Int) -> WireClient { peers[index % peers.count].client }

  /// A GET that is answered by a state at least as new as a cursor.
  func get(_ target: String, from index: Int, since cursor: String?) throws -> WireResponse {
    try self[index].send("GET", target, cursor.map { ["Keyway-Cursor": $0] } ?? [:])
  }

  /// Every transaction that a peer has, a line each.
  func journal(of index: Int, since cursor: String?) throws -> [String] {
    let epoch = try peers[index].status["epoch"].text ?? ""
    let response = try get("/v1/journal?since=\(epoch)-0&limit=10000", from: index, since: cursor)
    guard response.status == 200 else { throw LoopbackError(.unexpectedStatus(response.status), response.text) }
    return response.text.split(separator: "\n").map(String.init)
  }
}
