import Cluster
import Foundation
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import Outbound
import Store

/// Implements `keyway serve --follow`: serves the objects of another node from a store of its own, until a signal stops
/// it.
///
/// Without a store, it begins with a copy. It begins again with another copy if the node that it follows has become
/// another store or no longer has the next records.
struct FollowerServing {
  private let settings: Settings
  private let source: SettingsSource
  private let signals: ServerSignals
  private let address: NodeAddress
  private let outbound: OutboundClient
  /// The text of the given schema, which has to match the schema of the leader. Nil if none was given.
  private let schema: String?
  private let log: LogOutput
  private let logger: Logger

  /// The pause between two attempts to get a first copy.
  private static let pause = Duration.seconds(1)

  /// Creates the node. `source` is the source of the settings, and `signals` stops the server or makes it read them
  /// again.
  init(
    _ settings: Settings, from source: SettingsSource, _ signals: ServerSignals, log: LogOutput, logger: Logger
  ) throws {
    self.settings = settings
    self.source = source
    self.signals = signals
    self.log = log
    self.logger = logger
    outbound = settings.api.cluster.makeOutboundClient()
    do throws(NodeFault) {
      address = try NodeAddress(settings.api.cluster.follow)
    } catch {
      throw CommandFailure("nodes.follow: \(error)")
    }
    schema = settings.origins["schema"] == nil ? nil : try SchemaFile.loadWithText(settings.schema).text
  }

  private var isInMemory: Bool { settings.store == "memory" }

  private var leader: Leader {
    Leader(NodeClient(address, keeping: 2, by: outbound), tokenFile: settings.api.cluster.tokenFile)
  }

  func run() async throws {
    // The port comes before any fetch: a start that fails for it leaves nothing behind.
    var port = settings.api.port
    var socket: ListeningSocket? = try ListeningSocket(host: settings.api.host, port: port)
    if !isInMemory { try claim() }
    var copy: LeaderCopy?
    if needsCopy {
      var waiting: KeywayServer?
      copy = try await firstCopy {
        waiting = try waitingServer(&socket)
        port = waiting?.port ?? port
      }
      waiting?.drain(seconds: 1)
    }
    try checkAccess(copy?.hasAccess)
    while true {
      let journal = try self.journal(copy)
      let (schema, text) = try self.schema(of: journal)
      let (ends, continuation) = AsyncStream.makeStream(of: RunningServer.Outcome.self)
      let plan = Following.Plan(
        leader: leader, directory: copyDirectory, schema: self.schema, beginsWithCopy: copy != nil,
        mayHaveAccess: settings.api.access.isDecided
      ) {
        continuation.yield(.rejoin($0))
      } noteAccess: { [self] hasAccess in
        note(hasAccess)
        if hasAccess, !settings.api.access.isDecided { continuation.yield(.over("\(leader.accessRefusal)")) }
      }
      var configuration = settings.api
      configuration.port = port
      configuration.cluster.following = plan
      signals.keep()
      let server = try KeywayServer(
        schema: schema, schemaText: text, configuration: configuration, logger: logger, journal: journal,
        socket: socket, log: log)
      socket = nil
      port = server.port
      let running = RunningServer(
        server: server, directory: settings.store,
        settings: RunningSettings(settings, from: source, log: log, logger: logger), logger: logger, signals: signals,
        ends: ends
      ) { ServeCommand.announce(server, settings, logger) }
      switch try await running.untilSignalled() {
      case .signalled, .reopened: return
      case .over(let reason): throw CommandFailure(reason)
      case .rejoin(let other):
        logger.warning("beginning anew with a copy", metadata: ["leader": "\(address)"])
        copy = other
      }
    }
  }

  // MARK: The store

  /// Marks the directory's store as that of a follower. Throws if it already is a store of another kind.
  private func claim() throws {
    let directory = settings.store
    let leader = try FollowerMark.read(inDirectory: directory)
    if leader == nil, SQLiteJournal.exists(inDirectory: directory) {
      throw CommandFailure(
        "\(directory): this store does not follow a node, and its objects would be lost; name another with --store")
    }
    if let leader, PostgresAddress.isName(leader) {
      throw CommandFailure(
        "\(directory): this store is a peer's cache of the journal in \(leader); name another with --store")
    }
    let hasAccess = try FollowerMark.hasAccess(inDirectory: directory)
    try FollowerMark.write(address.description, hasAccess: hasAccess, inDirectory: directory)
  }

  /// Throws if the leader authenticates its clients and this node does not. If the leader does not respond, its last
  /// known state counts. `known` is the state in a copy that was just fetched.
  private func checkAccess(_ known: Bool?) throws {
    var hasAccess = known ?? (try? leader.description())?.hasAccess
    if let hasAccess { note(hasAccess) }
    if hasAccess == nil, !isInMemory { hasAccess = try FollowerMark.hasAccess(inDirectory: settings.store) }
    guard settings.api.access.isDecided || hasAccess != true else { throw CommandFailure("\(leader.accessRefusal)") }
  }

  /// Remembers whether the leader authenticates its clients, for a start at which it does not respond.
  private func note(_ hasAccess: Bool) {
    guard !isInMemory else { return }
    do throws(JournalError) {
      guard try FollowerMark.hasAccess(inDirectory: settings.store) != hasAccess else { return }
      try FollowerMark.write(address.description, hasAccess: hasAccess, inDirectory: settings.store)
    } catch {
      logger.warning("cannot store whether the leader has access control", metadata: ["reason": "\(error)"])
    }
  }

  private var needsCopy: Bool {
    isInMemory || JournalInstallation.isInterrupted(inDirectory: settings.store)
      || !SQLiteJournal.exists(inDirectory: settings.store)
  }

  private var copyDirectory: String {
    isInMemory ? FileManager.default.temporaryDirectory.path : settings.store
  }

  /// Returns a server that reports this node as alive and not ready while there is no copy. Its store is never read.
  private func waitingServer(_ socket: inout ListeningSocket?) throws -> KeywayServer {
    let journal = MemoryJournal(identity: JournalIdentity(epoch: KeywayServer.makeEpoch(), schema: ""))
    try journal.append([JournalRecord(revision: 1, milliseconds: 0, body: [])], after: 0)
    defer { socket = nil }
    return try KeywayServer(
      schema: Schema(yaml: "entities: {}"), configuration: settings.api, logger: logger, journal: journal,
      socket: socket, log: log)
  }

  /// Fetches a copy, for as long as that takes. `wait` is called once, if no copy is available at once.
  private func firstCopy(_ wait: () throws -> Void) async throws -> LeaderCopy {
    var last = ""
    while true {
      do throws(Leader.Refusal) {
        return try LeaderCopy.fetch(
          from: leader, into: copyDirectory, schema: schema, mayHaveAccess: settings.api.access.isDecided)
      } catch {
        switch error {
        case .otherSchema(let reason): throw CommandFailure("\(address) cannot be followed: \(reason)")
        case .access(let reason): throw CommandFailure(reason)
        case .fault, .otherHistory: break
        }
        if last.isEmpty { try wait() }
        let reason = "\(error)"
        if reason != last {
          logger.warning("waiting for a copy", metadata: ["leader": "\(address)", "reason": "\(reason)"])
        }
        last = reason
      }
      try await Task.sleep(for: Self.pause)
    }
  }

  /// Returns the journal of the store, after installing the copy if there is one.
  private func journal(_ copy: LeaderCopy?) throws -> any TransactionJournal {
    guard let copy else { return try ServeCommand.openJournal(settings, schema: "", logger: logger) }
    return try StoreAdvice.giving(for: settings.store) {
      let snapshot = try copy.snapshotPath.map { try SnapshotFile(path: $0) }
      defer { if let path = copy.snapshotPath { try? FileManager.default.removeItem(atPath: path) } }
      if isInMemory { return try MemoryJournal(joining: copy.identity, snapshot) }
      try JournalInstallation.join(
        copy.identity, snapshot, to: settings.store, milliseconds: StoreOptions.now)
      return try ServeCommand.openJournal(settings, schema: "", logger: logger)
    }
  }

  /// Returns the schema of a journal, which is that of the leader.
  private func schema(of journal: any TransactionJournal) throws -> (Schema, String) {
    let text = journal.identity.schema
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: text) {
      throw CommandFailure(
        "\(settings.store): the schema of \(address), which this store follows, differs from \(settings.schema); "
          + "start without --schema, or with that schema")
    }
    do throws(SchemaError) {
      return (try Schema(yaml: text), text)
    } catch {
      throw CommandFailure("the schema of \(address): \(error.rendered(file: "schema"))")
    }
  }
}
