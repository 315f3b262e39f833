import ArgumentParser
import Foundation
import Glibc
import HTTPServer
import Journal
import KeyValueModel
import KeywayAPI
import Logging
import ModelStore
import ServiceLifecycle
import UnixSignals

/// `keyway serve`: the server, until a signal stops it.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Serves the objects of a schema; without arguments, the example.")

  @OptionGroup var options: SettingsOptions

  func run() async throws {
    let settings = try options.load()
    if options.printConfig {
      print(settings.rendered(), terminator: "")
      return
    }
    let logger = Self.logger(settings)
    for warning in settings.warnings { logger.warning("\(warning)") }
    let (schema, text) = try SchemaFile.loadWithText(settings.schema)
    // The port comes first: a start that fails for it leaves no store behind.
    let socket = try ListeningSocket(host: settings.api.host, port: settings.api.port)
    let server = try KeywayServer(
      schema: schema, schemaText: text, configuration: settings.api, logger: logger,
      journal: try Self.openJournal(settings, schema: text, logger: logger), socket: socket
    ) {
      if let seed = settings.seedFile { try SeedFile.load(seed, into: $0) }
    }
    let service = ServerService(
      server: server, directory: settings.store, drainSeconds: settings.drainSeconds, logger: logger
    ) {
      let host = settings.api.host
      logger.notice(
        "serving",
        metadata: [
          "url": "http://\(host.contains(":") ? "[\(host)]" : host):\(server.port)",
          "schema": "\(settings.schema)", "store": "\(settings.store)",
          "objects": "\(server.store.snapshot.state.count)",
          "epoch": "\(server.store.epoch)",
        ])
    }
    // The group logs each signal before it passes it on, and must not wait there for a log that is not read.
    var groupLogger = logger
    groupLogger.logLevel = max(.warning, logger.logLevel)
    let group = ServiceGroupConfiguration(
      services: [.init(service: service)], gracefulShutdownSignals: [.sigterm, .sigint], logger: groupLogger)
    try await ServiceGroup(configuration: group).run()
    logger.notice("stopped")
  }

  private static func logger(_ settings: Settings) -> Logger {
    Logger(label: "keyway") { label in
      switch settings.logFormat {
      case .json: return JSONLogHandler(label: label, logLevel: settings.logLevel)
      case .text:
        var handler = StreamLogHandler.standardError(label: label)
        handler.logLevel = settings.logLevel
        return handler
      }
    }
  }

  /// Opens the journal of the store that the settings name, or makes one for objects of the schema with that text.
  private static func openJournal(
    _ settings: Settings, schema: String, logger: Logger
  ) throws -> any TransactionJournal {
    let identity = JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: schema)
    guard settings.store != "memory" else { return MemoryJournal(identity: identity) }
    let durability: SQLiteJournal.Durability =
      switch settings.durability {
      case .synced: .synced
      case .relaxed: .relaxed(milliseconds: settings.durabilityWindowMilliseconds)
      }
    let journal = try StoreAdvice.giving(for: settings.store) {
      try SQLiteJournal(directory: settings.store, durability: durability) { identity }
    }
    for remark in journal.remarks { logger.warning("\(remark)") }
    return journal
  }
}

/// The server as a service: it runs until the group shuts down, and drains then.
private struct ServerService: Service {
  let server: KeywayServer
  let directory: String
  let drainSeconds: Int
  let logger: Logger
  /// Logs that the server serves. Its reader may then stop the server, so signals have to be waited for by then.
  let announce: @Sendable () -> Void

  func run() async throws {
    try await cancelWhenGracefulShutdown { try await recover() }
    if !Task.isShuttingDownGracefully {
      announce()
      // Returns when the group shuts down; the server serves on threads of its own.
      try? await gracefulShutdown()
    }
    endAnyway()
    server.drain(seconds: drainSeconds)
  }

  /// Has the server read its journal, on a thread of its own, and returns when it has, or when the server is to stop.
  private func recover() async throws {
    let log = RecoveryLog(logger)
    let (outcomes, continuation) = AsyncStream.makeStream(of: Result<[String], any Error>.self)
    Thread.detachNewThread { [server] in
      continuation.yield(Result { try log.closing { try server.recover(report: log.note) } })
      continuation.finish()
    }
    for await outcome in outcomes {
      let remarks = try StoreAdvice.giving(for: directory, outcome.get)
      for remark in remarks { logger.warning("\(remark)") }
    }
  }

  /// Ends the program within the second after the drain should have ended it: a thread that is stuck cannot be stopped,
  /// and the program would be killed by the one that waits for it.
  private func endAnyway() {
    let logger = logger
    let patience = Double(drainSeconds) + 0.6
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: patience)
      // On a thread of its own, because the log may be what is stuck.
      Thread.detachNewThread { logger.error("a thread does not end; ending without it") }
      Thread.sleep(forTimeInterval: 0.1)
      _exit(0)
    }
  }
}
