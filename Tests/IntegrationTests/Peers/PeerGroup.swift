import Foundation
import KeyValueModel
import TestKit

/// Peers: several processes of `keyway serve` with their journal in one PostgreSQL database.
final class PeerGroup {
  let postgres: PostgresServer
  let database: String
  private(set) var peers: [ServerProcess] = []
  private let settings: [String: String]

  /// Starts so many peers with the example, on a new database.
  init(_ count: Int, on postgres: PostgresServer? = nil, settings: [String: String] = [:]) throws {
    self.postgres = try postgres ?? .shared()
    database = try self.postgres.makeDatabase()
    self.settings = settings
    for _ in 0..<count { peers.append(try start()) }
  }

  /// Starts another process on the same database, with these settings besides those of the group. `port` is that of a
  /// proxy in front of the database, if any.
  func start(_ changes: [String: String] = [:], by port: UInt16? = nil) throws -> ServerProcess {
    let named = settings.merging(changes) { _, given in given }
    let name = database.split(separator: "/").last.map(String.init) ?? ""
    let server = try ServerProcess("--journal", postgres.address(of: name, port: port), settings: named)
    let isReady = Deadline().awaits { (try? server.client.send("GET", "/readyz"))?.status == 200 }
    guard isReady else { throw LoopbackError("a peer is not ready:\n\(server.child.errors)") }
    return server
  }

  /// Kills a peer.
  func kill(_ index: Int) throws {
    peers[index].child.send(SIGKILL)
    _ = try peers[index].child.exitStatus()
  }

  /// Kills a peer, and starts another in its place.
  func replace(_ index: Int) throws {
    try kill(index)
    peers[index] = try start()
  }

  /// Adds another peer, with these settings besides those of the group, which reaches the database by `port`.
  func add(_ changes: [String: String], by port: UInt16? = nil) throws {
    peers.append(try start(changes, by: port))
  }

  subscript(index: Int) -> WireClient { peers[index % peers.count].client }

  /// Sends a GET that needs a state at least as new as a cursor.
  func get(_ target: String, from index: Int, since cursor: String?) throws -> WireResponse {
    try self[index].send("GET", target, cursor.map { ["Keyway-Cursor": $0] } ?? [:])
  }

  /// Returns every transaction of a peer, a line each.
  func journal(of index: Int, since cursor: String?) throws -> [String] {
    let epoch = try peers[index].status["epoch"].text ?? ""
    let response = try get("/v1/journal?since=\(epoch)-0&limit=10000", from: index, since: cursor)
    guard response.status == 200 else { throw LoopbackError(.unexpectedStatus(response.status), response.text) }
    return response.text.split(separator: "\n").map(String.init)
  }
}
