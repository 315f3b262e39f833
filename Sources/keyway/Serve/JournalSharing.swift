import Foundation
import Journal
import KeywayAPI
import Locking
import Logging
import PostgresJournal

/// The journal that this node shares with others, and its end: where the database has gone on in another epoch or under
/// another schema, the server stops as it does at SIGTERM, and the program ends with an error, so that what supervises
/// it starts it anew.
struct JournalSharing: Sendable {
  let journal: PostgresJournal
  private let end: Locked<String?>

  /// Opens the journal that the settings name; nil where they name none. Throws a `CommandFailure`.
  init?(_ settings: Settings, port: UInt16, schema: String, logger: Logger) throws {
    guard settings.api.node.journal != "none" else { return nil }
    var options = PostgresJournal.Options()
    let url = settings.api.node.url
    options.node = url == "auto" ? ServeCommand.url(settings.api.host, port: port) : url
    options.silence = .seconds(settings.api.node.staleSeconds)
    let end = Locked<String?>(nil)
    journal = try StoreAdvice.giving(for: StoreAdvice.database) {
      try PostgresJournal(settings.api.node.journal, options: options) {
        JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: schema)
      }
    }
    self.end = end
    journal.whenOver { reason in
      end.withLock { $0 = reason }
      logger.error("the journal is over; ending", metadata: ["reason": "\(reason)"])
      kill(getpid(), SIGTERM)
    }
  }

  /// Throws why the journal is over, where it is.
  func requireUse() throws {
    if let reason = end.withLock({ $0 }) { throw CommandFailure(reason) }
  }
}
