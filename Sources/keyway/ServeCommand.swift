internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import HTTPServer
internal import KeyValueModel
internal import KeywayAPI
internal import Logging
internal import ModelStore
internal import ServiceLifecycle
internal import UnixSignals

/// `keyway serve`: the server, until it is told to stop.
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
    guard settings.store == "memory" else {
      throw Complaint("store: '\(settings.store)': this version of Keyway keeps its objects in memory only")
    }
    let logger = Self.logger(settings)
    for warning in settings.warnings { logger.warning("\(warning)") }
    let schema = try SchemaFile.load(settings.schema)
    let server = try KeywayServer(schema: schema, configuration: Self.configuration(settings), logger: logger) {
      if let seed = settings.seedFile { try SeedFile.load(seed, into: $0) }
    }
    let service = ServerService(server: server, drainSeconds: settings.drainSeconds, logger: logger) {
      logger.notice(
        "serving",
        metadata: [
          "url": "http://\(settings.host.contains(":") ? "[\(settings.host)]" : settings.host):\(server.port)",
          "schema": "\(settings.schema)", "objects": "\(server.store.snapshot.state.count)",
          "epoch": "\(server.store.epoch)",
        ])
    }
    // The group tells of each signal before it passes it on, and must not wait there for a log that nobody reads.
    var groupLogger = logger
    groupLogger.logLevel = max(.warning, logger.logLevel)
    let group = ServiceGroupConfiguration(
      services: [.init(service: service)], gracefulShutdownSignals: [.sigterm, .sigint], logger: groupLogger)
    try await ServiceGroup(configuration: group).run()
    logger.notice("stopped")
  }

  private static func logger(_ settings: Settings) -> Logger {
    let level = Logger.Level(rawValue: settings.logLevel) ?? .info
    return Logger(label: "keyway") { label in
      if settings.logFormat == "json" { return JSONLogHandler(label: label, logLevel: level) }
      var handler = StreamLogHandler.standardError(label: label)
      handler.logLevel = level
      return handler
    }
  }

  private static func configuration(_ settings: Settings) -> KeywayServer.Configuration {
    var configuration = KeywayServer.Configuration()
    configuration.host = settings.host
    configuration.port = UInt16(clamping: settings.port)
    configuration.names = settings.names
    configuration.store.queuedWrites = settings.writesQueued
    configuration.store.historyRevisions = settings.historyRevisions
    configuration.store.historyBytes = settings.historyBytes
    configuration.server.connections = settings.connectionsMaximum
    configuration.server.connectionsPerAddress = settings.connectionsPerAddress
    configuration.server.headerBytes = settings.requestHeaderBytes
    configuration.server.bodyBytes = settings.requestBodyBytes
    configuration.server.requestSeconds = settings.requestSeconds
    configuration.server.keepAliveSeconds = settings.keepAliveSeconds
    configuration.server.threads = settings.httpThreads
    configuration.server.streams = settings.streamsMaximum
    configuration.server.streamThreads = settings.streamsThreads
    configuration.server.pendingBytesPerStream = settings.streamsPendingBytes
    configuration.server.stallSeconds = settings.streamsStallSeconds
    configuration.server.heartbeatSeconds = settings.heartbeatSeconds
    configuration.server.lifetimeSeconds = settings.streamsLifetimeSeconds
    configuration.streams.cells = settings.streamsCells
    configuration.streams.queries = settings.queriesMaximum
    configuration.store.queryRows = settings.queriesRows
    configuration.store.queryFilterCost = settings.queriesFilterCost
    configuration.store.queryOpeningCost = settings.fetchFilterCost
    configuration.streams.keyPaths = settings.streamsKeyPaths
    configuration.streams.replayBytes = settings.streamsReplayBytes
    configuration.store.changesPerObserver = settings.streamsChangesPerEvent
    configuration.streams.heartbeatSeconds = settings.heartbeatSeconds
    configuration.requests.patchOperations = settings.patchOperations
    configuration.requests.answerObjects = settings.answerObjects
    configuration.pages.fetches = settings.fetchPages
    configuration.pages.seconds = UInt64(settings.fetchPageSeconds)
    configuration.pages.objects = settings.fetchLimit
    configuration.pages.filterCost = settings.fetchFilterCost
    configuration.idempotency.keys = settings.idempotencyKeys
    configuration.idempotency.bytes = settings.idempotencyBytes
    configuration.idempotency.seconds = UInt64(settings.idempotencySeconds)
    return configuration
  }
}

/// The server as a service: it runs until the group shuts down, and drains then.
private struct ServerService: Service {
  let server: KeywayServer
  let drainSeconds: Int
  let logger: Logger
  /// Says that the server serves. Whoever reads that may stop it, so it is not said before signals are waited for.
  let announce: @Sendable () -> Void

  func run() async throws {
    announce()
    // Comes back when the group shuts down; the server serves on threads of its own.
    try? await gracefulShutdown()
    endAnyway()
    server.drain(seconds: drainSeconds)
  }

  /// Ends the program within the second after the drain should have ended it, whatever holds it up: a thread that is
  /// stuck cannot be stopped, and would be killed by whoever waits for the program.
  private func endAnyway() {
    let logger = logger
    let patience = Double(drainSeconds) + 0.6
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: patience)
      // On a thread of its own, because the log may be what everybody waits for.
      Thread.detachNewThread { logger.error("a thread does not end; ending without it") }
      Thread.sleep(forTimeInterval: 0.1)
      _exit(0)
    }
  }
}
