import Foundation
import KeyValueModel
import TestKit

/// A server with a store on the disk, which may follow another. It can be killed and restarted on its port.
final class NodeProcess {
  let directory: String
  let port: UInt16
  private var settings: [String: String]
  private var running: ServerProcess?

  /// Starts a node called `name` in a directory, which follows the node at a URL, if given. It may be followed, and
  /// lists the addresses of all other nodes, unless `settings` say otherwise.
  init(
    _ name: String, in parent: ScratchDirectory, following leader: String? = nil, settings: [String: String] = [:]
  ) throws {
    directory = parent.file(name)
    port = try NodePorts.take()
    self.settings = settings.merging(["nodes.followers": "true", "nodes.urls": NodePorts.urls]) { given, _ in given }
    if settings["store"] == nil { self.settings["store"] = directory }
    self.settings["port"] = "\(port)"
    if let leader { self.settings["nodes.follow"] = leader }
    try start()
  }

  var url: String { "http://127.0.0.1:\(port)" }

  var server: ServerProcess {
    guard let running else { preconditionFailure("the node was killed") }
    return running
  }

  var client: WireClient { WireClient(port: port, keepingAlive: running) }

  /// The JSON of its status.
  var status: Value { get throws { try client.json("/v1/status") } }

  var epoch: String { get throws { try status["epoch"].text ?? "" } }

  var revision: Int { get throws { try status["revision"].whole ?? -1 } }

  /// Starts it, with changed settings, if given.
  func start(_ changes: [String: String?] = [:]) throws {
    for (name, value) in changes { settings[name] = value }
    running = try ServerProcess(settings: settings)
  }

  /// Ends it with SIGKILL.
  func kill() throws {
    server.child.send(SIGKILL)
    _ = try server.child.exitStatus()
    running = nil
  }

  /// Ends it with SIGTERM. Throws if its exit status is not 0.
  func stop() throws {
    let status = try server.stop()
    guard status == 0 else { throw LoopbackError("the node ended with \(status)") }
    running = nil
  }

  /// Waits until it has reached a revision. While it begins with a new copy, it cannot be reached for a moment.
  func awaitRevision(_ revision: Int) -> Bool {
    Deadline().awaits { (try? self.revision) ?? -1 >= revision }
  }

  /// Waits until it is ready, or is not.
  func awaitReady(_ isReady: Bool = true) -> Bool {
    Deadline().awaits { ((try? client.send("GET", "/readyz"))?.status == 200) == isReady }
  }

  /// Returns the output of `keyway store verify` for the store.
  func verified() throws -> String {
    let result = try ChildProcess.keyway("store", "verify", "--store", directory)
    guard result.status == 0 else { throw LoopbackError(result.output + result.errors) }
    return result.output
  }
}
