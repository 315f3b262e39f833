internal import ArgumentParser
internal import Foundation
internal import Glibc
internal import HTTPServer
internal import Journal
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
    let logger = Self.logger(settings)
    for warning in settings.warnings { logger.warning("\(warning)") }
    let (schema, text) = try SchemaFile.loadWithText(settings.schema)
    let journal = try settings.openJournal(schema: text)
    for remark in journal.remarks { logger.warning("\(remark)") }
    let server = try KeywayServer(
      schema: schema, schemaText: text, configuration: Self.configuration(settings), logger: logger,
      journal: journal.journal
    ) {
      if let seed = settings.seedFile { try SeedFile.load(seed, into: $0) }
    }
    let service = ServerService(
      server: server, directory: settings.store, drainSeconds: settings.drainSeconds, logger: logger
    ) {
      logger.notice(
        "serving",
        metadata: [
          "url": "http://\(settings.host.contains(":") ? "[\(settings.host)]" : settings.host):\(server.port)",
          "schema": "\(settings.schema)", "store": "\(settings.store)",
          "objects": "\(server.store.snapshot.state.count)",
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

  /// The configuration of a server that the settings ask for.
  static func configuration(_ settings: Settings) -> KeywayServer.Configuration {
    var configuration = KeywayServer.Configuration()
    configuration.host = settings.host
    configuration.port = UInt16(clamping: settings.port)
    configuration.names = settings.names
    configuration.store.queuedWrites = settings.writesQueued
    configuration.store.historyRevisions = settings.historyRevisions
    configuration.store.historyBytes = settings.historyBytes
    configuration.store.historySeconds = settings.historySeconds
    configuration.store.snapshotRevisions = settings.snapshotRevisions
    configuration.store.snapshotBytes = settings.snapshotBytes
    configuration.store.batchBytes = settings.writesBatchBytes
    configuration.store.resumedRevisions = settings.resumeRevisions
    configuration.store.resumedRows = settings.resumeRows
    configuration.streams.resumedBytes = settings.resumeBytes
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
    configuration.streams.opening = settings.streamsOpening
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
    configuration.requests.journalRecords = settings.journalRecords
    configuration.requests.journalBytes = settings.journalBytes
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
  /// Where the store is.
  let directory: String
  let drainSeconds: Int
  let logger: Logger
  /// Says that the server serves. Whoever reads that may stop it, so it is not said before signals are waited for.
  let announce: @Sendable () -> Void

  func run() async throws {
    try await cancelWhenGracefulShutdown { try await recover() }
    if !Task.isShuttingDownGracefully {
      announce()
      // Comes back when the group shuts down; the server serves on threads of its own.
      try? await gracefulShutdown()
    }
    endAnyway()
    server.drain(seconds: drainSeconds)
  }

  /// Has the server read its journal, on a thread of its own, and comes back when it has, or when the server is to stop.
  private func recover() async throws {
    let log = RecoveryLog(logger)
    let (outcomes, continuation) = AsyncStream.makeStream(of: Result<[String], any Error>.self)
    Thread.detachNewThread { [server] in
      continuation.yield(Result { try server.recover(report: log.note) })
      continuation.finish()
    }
    for await outcome in outcomes {
      let remarks = try StoreAdvice.giving(for: directory, outcome.get)
      for remark in remarks { logger.warning("\(remark)") }
    }
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
