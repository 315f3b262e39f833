import Cluster
import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import Store
import Support

/// `keyway serve --journal`: serves the objects of a journal that it shares with others, until a signal stops it.
///
/// Where the journal has become another one, it begins anew with that one, and its clients with it. Where it has gone
/// on under another schema, it ends with an error.
struct PeerServing {
  private let settings: Settings
  private let source: SettingsSource
  private let signals: ServerSignals
  private let log: LogOutput
  private let logger: Logger

  /// Seconds between two attempts to begin anew.
  private static let pause = 1.0

  /// `source` is where the settings come from, and `signals` what stops the server or has it read them again.
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

  /// Gives what the server is to be ended for. The journal is opened again before that: until then the server goes on
  /// with what it has.
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

  /// The journal as it is now, once it can be opened.
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
