import Cluster
import KeywayServer
import Logging
import Store

/// The journal of a peer: the database that the settings name, and a directory with what this node keeps of it.
struct PeerJournal: Sendable {
  private let address: String
  private let options: PostgresJournal.Options
  private let schema: String
  /// Where it keeps something of the journal; nil where it does not.
  private let directory: String?
  private let limits: StoreLimits
  private let logger: Logger

  /// The journal that the settings name, for a node at a port whose schema has this text. Throws a `CommandFailure`
  /// where the directory is another node's.
  init(_ settings: Settings, port: UInt16, schema: String, logger: Logger) throws {
    let address = settings.api.node.journal
    self.address = address
    var options = PostgresJournal.Options()
    let url = settings.api.node.url
    options.node = url == "auto" ? ServeCommand.url(settings.api.host, port: port) : url
    options.silence = .seconds(settings.api.node.staleSeconds)
    (self.options, self.schema, self.logger) = (options, schema, logger)
    limits = settings.api.store
    directory = try settings.peerStore.flatMap { try Self.claim($0, for: PostgresAddress.name(of: address), logger) }
  }

  /// Opens it. Throws a `CommandFailure`.
  func open() throws -> any SharedJournal {
    do throws(JournalError) {
      guard let directory else { return try connect() }
      return try opening(directory).run()
    } catch {
      if case .inUse = error, let directory { throw CommandFailure(StoreAdvice.text(error, directory: directory)) }
      throw CommandFailure(StoreAdvice.text(error, directory: StoreAdvice.database))
    }
  }

  /// The database, where it answers.
  func connect() throws(JournalError) -> PostgresJournal {
    try PostgresJournal(address, options: options) {
      JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: schema)
    }
  }

  /// A journal that is open, with a new cache in the place of what there is.
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
        "the database has no journal; what was kept of one may be its last copy, and was moved",
        metadata: ["store": "\(directory)", "to": "\(place)"])
    case .alone(let revision, let reason):
      logger.warning(
        "the journal does not answer; beginning with the cache",
        metadata: ["store": "\(directory)", "revision": "\(revision)", "reason": "\(reason)"])
    case .unkept(let reason):
      logger.warning("the cache cannot be kept", metadata: ["store": "\(directory)", "reason": "\(reason)"])
    }
  }

  /// Says that the store of a directory is what a peer keeps of a database. Nil where that cannot be written, so that
  /// there is no cache. Throws a `CommandFailure` where there is a store that is none.
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
    if mark == nil, JournalInstallation.isThere(inDirectory: directory) {
      throw CommandFailure(
        "\(directory): this store is a node's own, and what it has would be lost where it becomes a cache of the "
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
  /// Where a peer keeps something of its journal; nil where it does not. Peers that are started in one directory, and
  /// name no store, have one each, by their port; at a free port or a socket they have none.
  var peerStore: String? {
    guard origins["store"] == nil else { return store == "memory" ? nil : store }
    guard api.port != 0, !api.host.hasPrefix("unix:") else { return nil }
    return "\(Self.defaultStore)/peer-\(api.port)"
  }
}
