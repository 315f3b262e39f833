import ArgumentParser
import CEmbeddedFiles
import Cluster
import Dispatch
import Foundation
import HTTPServer
import KeyValueModel
import KeywayClient
import KeywayServer
import Logging
import Store
import Support

/// Implements `keyway serve`: runs the server until a signal stops it.
struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Serves the objects of a schema, or of the example without a configuration.",
    discussion: """
      keyway serve
      keyway serve --schema schema.yaml --store data
      keyway serve --config /etc/keyway/keyway.yaml --port 8081

      The configuration file is that of --config, else of KEYWAY_CONFIG, else keyway.yaml in the current folder; the log
      names it. Flags take precedence over KEYWAY_… variables, and these over the file.
      """)

  @OptionGroup var options: SettingsOptions

  func run() async throws {
    // The server does not end when the reader of the log does: writing to its pipe then fails like any other write.
    signal(SIGPIPE, SIG_IGN)
    let source = options.source
    let settings = try source.load()
    if options.printConfig {
      return StandardOutput.text(settings.rendered())
    }
    SystemAllocator.configure()
    let log = LogOutput(
      settings.logFormat, level: settings.logLevel, descriptor: STDERR_FILENO, bytes: settings.logBytes)
    // Writes pending log lines before the process ends, if the log has a reader.
    defer { log.flush(within: .seconds(1)) }
    let logger = Logger(label: "keyway") { LineLogHandler(label: $0, output: log) }
    // Signals are trapped before anything responds: a supervisor may send one at the first response.
    let signals = await ServerSignals {
      logger.notice("stopped before serving")
      log.flush(within: .seconds(1))
      _exit(EXIT_SUCCESS)
    }
    if let file = source.configFile {
      logger.notice("configuration", metadata: ["file": "\(file)", "from": "\(source.fileOrigin)"])
    }
    for warning in settings.warnings { logger.warning("\(warning)") }
    let tokenFile = settings.api.cluster.tokenFile
    if tokenFile != ClusterOptions.none, let warning = SecretFile.warning(of: tokenFile, named: "nodes.tokenFile") {
      logger.warning("\(warning)")
    }
    try Self.requireAuthorities(settings.api.cluster)
    guard settings.api.cluster.follow == ClusterOptions.none else {
      guard settings.api.cluster.journal == ClusterOptions.none else {
        throw CommandFailure("nodes.follow and nodes.journal: a node follows another one or shares a journal")
      }
      try await FollowerServing(settings, from: source, signals, log: log, logger: logger).run()
      return logger.notice("stopped")
    }
    guard settings.api.cluster.journal == ClusterOptions.none else {
      try await PeerServing(settings, from: source, signals, log: log, logger: logger).run()
      return logger.notice("stopped")
    }
    try Self.requireLeader(settings)
    let (schema, text) = try SchemaFile.loadWithText(settings.schema)
    // The port comes first: a start that fails for it leaves no store behind.
    let socket = try ListeningSocket(host: settings.api.host, port: settings.api.port)
    signals.keep()
    let server = try KeywayServer(
      schema: schema, schemaText: text, configuration: settings.api, logger: logger,
      journal: try Self.openJournal(settings, schema: text, logger: logger), socket: socket, log: log
    ) {
      if let seed = settings.seedFile { try SeedFile.load(seed, into: $0) }
    }
    let running = RunningServer(
      server: server, directory: settings.store,
      settings: RunningSettings(settings, from: source, log: log, logger: logger), logger: logger, signals: signals
    ) { Self.announce(server, settings, logger) }
    _ = try await running.untilSignalled()
    logger.notice("stopped")
  }

  /// Logs that a server serves.
  static func announce(_ server: KeywayServer, _ settings: Settings, _ logger: Logger) {
    let follow = settings.api.cluster.follow
    var metadata: Logger.Metadata = [
      "url": "\(Self.url(settings.api.host, port: server.port))",
      "schema": "\(settings.schema)",
      "store": "\(settings.api.cluster.journal == ClusterOptions.none ? settings.store : StoreAdvice.database)",
      "objects": "\(server.store.snapshot.state.count)",
      "epoch": "\(server.store.epoch)",
    ]
    if follow != ClusterOptions.none {
      metadata["follows"] = "\(follow)"
      metadata["schema"] = "\(follow)"
    }
    logger.notice("serving", metadata: metadata)
  }

  /// Throws if the file of the certificates by which other nodes are trusted cannot be used.
  private static func requireAuthorities(_ node: ClusterOptions) throws {
    guard node.caFile != ClusterOptions.none else { return }
    guard let text = try? String(contentsOfFile: node.caFile, encoding: .utf8) else {
      throw CommandFailure("nodes.caFile: '\(node.caFile)' cannot be read")
    }
    guard text.contains("-----BEGIN CERTIFICATE-----") else {
      throw CommandFailure("nodes.caFile: '\(node.caFile)' does not contain a certificate in PEM")
    }
  }

  /// Throws if the store follows another node: writes of its own would give its revisions two meanings.
  private static func requireLeader(_ settings: Settings) throws {
    guard settings.store != "memory", let leader = try FollowerMark.read(inDirectory: settings.store) else { return }
    let isCache = PostgresAddress.isName(leader)
    throw CommandFailure(
      """
      \(settings.store): this store follows \(leader) and accepts no writes of its own.
        keyway serve --store \(settings.store) \(isCache ? "--journal …" : "--follow \(leader)")   continues following
        keyway store promote --store \(settings.store)   makes it accept writes
      """)
  }

  /// Returns the URL of the server, for the operator.
  static func url(_ host: String, port: UInt16) -> String {
    if SocketFile.path(ofHost: host) != nil { return host }
    return "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  /// Opens the journal of the store that the settings name, or creates one for objects of the schema with this text.
  static func openJournal(
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

/// The initial objects of an empty store: JSON lines, each an object with its `@ref`, created in one transaction.
enum SeedFile {
  /// Creates the objects of a file, or of the example. Throws a `CommandFailure` with file and line, and creates
  /// nothing then.
  static func load(_ path: String, into store: Store) throws {
    let text = try TextFile.read(path, orEmbedded: keyway_example_objects())
    var operations: [KeyValueModel.Operation] = []
    var lines: [Int] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    where !line.allSatisfy(\.isWhitespace) {
      operations.append(try operation(line, place: "\(path):\(index + 1)"))
      lines.append(index + 1)
    }
    // If several nodes start with an empty store, one of them fills it.
    if let error = try commit(operations, to: store), store.revision == 0 {
      throw CommandFailure("\(path):\(lines[error.operation ?? 0]): \(error.detail)")
    }
  }

  private static func operation(_ line: Substring, place: String) throws -> KeyValueModel.Operation {
    do throws(JSONError) {
      guard let object = try Value(json: String(line)).asObject,
        let reference = object["@ref"]?.asString.flatMap({ Reference($0) })
      else { throw JSONError(reason: "a line must be an object with its @ref", offset: 0) }
      return .create(reference, object)
    } catch {
      throw CommandFailure("\(place): \(error)")
    }
  }

  private static func commit(_ operations: [KeyValueModel.Operation], to store: Store) throws -> ModelError? {
    let result = Locked<(mistake: ModelError?, refusal: StoreUnavailable?)>((nil, nil))
    let done = DispatchSemaphore(value: 0)
    // The objects are the operator's own, and no request waits yet.
    _ = store.submit(Transaction(operations), limits: .unlimited) { outcome, _, unavailable in
      if case .failure(let error) = outcome { result.withLock { $0.mistake = error } }
      result.withLock { $0.refusal = unavailable }
      done.signal()
    }
    done.wait()
    let (mistake, refusal) = result.withLock { $0 }
    if let refusal { throw CommandFailure(refusal.reason) }
    return mistake
  }
}
