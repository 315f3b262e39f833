import Foundation
import KeyValueModel
import Support
import TestKit

/// `keyway serve` with a store in a folder, which outlives the processes.
final class DurableServer {
  private(set) var process: ServerProcess
  let store: String
  private let schema: String
  private let settings: [String: String]
  private let environment: [String: String]
  /// The port of the present process, for readers on other threads; 0 while none runs.
  let port: Locked<UInt16>

  /// Starts the first process. `environment` is that of all processes.
  init(
    schema: String, store: String, settings: [String: String] = [:], environment: [String: String] = [:]
  ) throws {
    self.schema = schema
    self.store = store
    self.settings = settings.merging(["seed": "none"]) { given, _ in given }
    self.environment = environment
    process = try Self.start(schema, store, self.settings, environment)
    port = Locked(process.port)
  }

  private static func start(
    _ schema: String, _ store: String, _ settings: [String: String], _ environment: [String: String]
  ) throws -> ServerProcess {
    let process = try ServerProcess("--schema", schema, "--store", store, settings: settings, environment: environment)
    let client = process.client
    let isReady = Deadline().awaits { (try? client.send("GET", "/readyz"))?.status == 200 }
    guard isReady else {
      throw LoopbackError("keyway serve is not ready:\n\(process.child.errors)")
    }
    return process
  }

  var client: WireClient { process.client }

  var revision: Int { get throws { try process.revision } }

  /// Ends the process with a signal. Returns its exit status, or 128 plus the signal's number.
  @discardableResult
  func end(_ signal: Int32) throws -> Int32 {
    port.withLock { $0 = 0 }
    process.child.send(signal)
    return try process.child.exitStatus()
  }

  /// Starts the next process on the same store.
  func start() throws {
    process = try Self.start(schema, store, settings, environment)
    let number = process.port
    port.withLock { $0 = number }
  }

  /// Ends it and starts it again.
  @discardableResult
  func restart(_ signal: Int32 = SIGKILL) throws -> Int32 {
    let status = try end(signal)
    try start()
    return status
  }
}
