import Cluster
import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import Store
import Support

/// Implements `keyway serve --journal`: serves the objects of a journal that it shares with other nodes, until a signal
/// stops it.
///
/// If the journal is replaced by another one, it begins again with that one, and so do its clients. If the journal
/// continues under another schema, it ends with an error.
struct PeerServing {
  private let settings: Settings
  private let source: SettingsSource
  private let signals: ServerSignals
  private let log: LogOutput
  private let logger: Logger

  /// The seconds between two attempts to open the journal again.
  private static let pause = 1.0

  /// Creates the node. `source` is the source of the settings, and `signals` stops the server or makes it read them
  /// again.
  init(
    _ settings: Settings, from source: SettingsSource, _ signals: ServerSignals, log: LogOutput, logger: Logger
  ) {
    (self.settings, self.source, self.signals) = (settings, source, signals)
    (self.log, self.logger) = (log, logger)
  }

  func run() async throws {
    let (schema, text) = try SchemaFile.loadWithText(settings.schema)
    // The port comes first: a start that fails for it leaves nothing behind.
    var socket: ListeningSocket? = try ListeningSocket(host: settings.api.host, port: settings.api.port)
    var port = socket?.port ?? settings.api.port
    let opening = try PeerJournal(settings, port: port, schema: text, logger: logger)
    var journal = try opening.open()
    while true {
      var configuration = settings.api
      configuration.port = port
      let ends = ends(of: journal, opening)
      signals.keep()
      let server = try KeywayServer(
        schema: schema, schemaText: text, configuration: configuration, logger: logger, journal: journal,
        socket: socket, log: log
      ) {
        if let seed = settings.seedFile { try SeedFile.load(seed, into: $0) }
      }
      socket = nil
      port = server.port
      let running = RunningServer(
        server: server, directory: StoreAdvice.database,
        settings: RunningSettings(settings, from: source, log: log, logger: logger), logger: logger, signals: signals,
        ends: ends
      ) { ServeCommand.announce(server, settings, logger) }
      switch try await running.untilSignalled() {
      case .signalled, .rejoin: return
      case .over(let reason): throw CommandFailure(reason)
      case .reopened(let next): journal = opening.caching(next)
      }
    }
  }

  /// Returns the outcomes that end the server. The journal is opened again before that, and until then the server goes
  /// on with the state that it has.
  private func ends(of journal: any SharedJournal, _ opening: PeerJournal) -> AsyncStream<RunningServer.Outcome> {
    let (ends, continuation) = AsyncStream.makeStream(of: RunningServer.Outcome.self)
    let logger = logger
    journal.whenOver { end in
      switch end {
      case .otherSchema(let reason):
        logger.error("the journal is over; ending", metadata: ["reason": "\(reason)"])
        continuation.yield(.over(reason))
      case .otherHistory(let reason):
        logger.warning("the journal is over; beginning anew", metadata: ["reason": "\(reason)"])
        Thread.detachNewThread { continuation.yield(.reopened(Self.reopened(opening, logger))) }
      }
    }
    return ends
  }

  /// Returns the present journal, once it can be opened.
  private static func reopened(_ opening: PeerJournal, _ logger: Logger) -> any SharedJournal {
    var last = ""
    while true {
      do throws(JournalError) {
        return try opening.connect()
      } catch {
        if error.description != last {
          logger.warning("waiting for the journal", metadata: ["reason": "\(error)"])
        }
        last = error.description
      }
      Thread.sleep(forTimeInterval: pause)
    }
  }
}

/// The journal of a peer: the database that the settings name, and a directory for its cache.
private struct PeerJournal: Sendable {
  private let address: String
  private let options: PostgresJournal.Options
  private let schema: String
  /// The directory of the cache, or nil if there is none.
  private let directory: String?
  private let limits: StoreLimits
  private let logger: Logger

  /// Creates the journal that the settings name, for a node at this port whose schema has this text. Throws a
  /// `CommandFailure` if the directory belongs to another node.
  init(_ settings: Settings, port: UInt16, schema: String, logger: Logger) throws {
    let address = settings.api.cluster.journal
    self.address = address
    var options = PostgresJournal.Options()
    let url = settings.api.cluster.url
    options.node = url == "auto" ? ServeCommand.url(settings.api.host, port: port) : url
    options.silence = .seconds(settings.api.cluster.staleSeconds)
    (self.options, self.schema, self.logger) = (options, schema, logger)
    limits = settings.api.store
    directory = try settings.peerStore.flatMap { try Self.claim($0, for: PostgresAddress.name(of: address), logger) }
  }

  /// Opens the journal. Throws a `CommandFailure`.
  func open() throws -> any SharedJournal {
    do throws(JournalError) {
      guard let directory else { return try connect() }
      return try opening(directory).run()
    } catch {
      if case .inUse = error, let directory { throw CommandFailure(StoreAdvice.text(error, directory: directory)) }
      throw CommandFailure(StoreAdvice.text(error, directory: StoreAdvice.database))
    }
  }

  /// Connects to the database. Throws if it does not respond.
  func connect() throws(JournalError) -> PostgresJournal {
    try PostgresJournal(address, options: options) {
      JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: schema)
    }
  }

  /// Returns an open journal with a new cache, which replaces an existing one.
  func caching(_ journal: any SharedJournal) -> any SharedJournal {
    directory.map { opening($0).caching(journal) } ?? journal
  }

  private func opening(_ directory: String) -> CacheOpening {
    CacheOpening(directory: directory, limits: limits, report: { [logger] in Self.log($0, directory, logger) }) {
      position throws(JournalError) in
      guard let position else { return try connect() }
      return try PostgresJournal(address, options: options, known: position)
    }
  }

  private static func log(_ remark: CacheOpening.Remark, _ directory: String, _ logger: Logger) {
    switch remark {
    case .found(let remark): logger.warning("\(remark)")
    case .dropped(let reason):
      logger.warning(
        "the cache is dropped, and begun anew", metadata: ["store": "\(directory)", "reason": "\(reason)"])
    case .setAside(let place):
      logger.warning(
        "the database has no journal; the cache of one may be its last copy, and was moved aside",
        metadata: ["store": "\(directory)", "to": "\(place)"])
    case .alone(let revision, let reason):
      logger.warning(
        "the journal does not answer; beginning with the cache",
        metadata: ["store": "\(directory)", "revision": "\(revision)", "reason": "\(reason)"])
    case .unkept(let reason):
      logger.warning("the cache cannot be kept", metadata: ["store": "\(directory)", "reason": "\(reason)"])
    }
  }

  /// Marks the store of a directory as the cache of a database. Returns nil if the mark cannot be written, so that
  /// there is no cache. Throws a `CommandFailure` if there is a store that is not a cache.
  private static func claim(_ directory: String, for name: String, _ logger: Logger) throws -> String? {
    let mark: String?
    do throws(JournalError) {
      mark = try FollowerMark.read(inDirectory: directory)
    } catch {
      throw CommandFailure("\(error)")
    }
    if let mark, !PostgresAddress.isName(mark) {
      throw CommandFailure("\(directory): this store follows \(mark); name another with --store")
    }
    if mark == nil, SQLiteJournal.exists(inDirectory: directory) {
      throw CommandFailure(
        "\(directory): this store is a node's own, and its objects would be lost if it became a cache of the "
          + "journal in \(name); name another with --store, or memory for none")
    }
    do throws(JournalError) {
      if mark != name { try FollowerMark.write(name, inDirectory: directory) }
      return directory
    } catch {
      log(.unkept("\(error)"), directory, logger)
      return nil
    }
  }
}

extension Settings {
  /// The directory of a peer's cache, or nil if it has none. Peers that are started in one directory without naming a
  /// store have one each, named by port. At a free port or a socket they have none.
  fileprivate var peerStore: String? {
    guard origins["store"] == nil else { return store == "memory" ? nil : store }
    guard api.port != 0, !api.host.hasPrefix("unix:") else { return nil }
    return "\(Self.defaultStore)/peer-\(api.port)"
  }
}
