import Cluster
import HTTPServer
import KeyValueModel
import KeywayServer
import Store

/// The table of settings. The configuration file, the environment variables, `--set`, `--print-config`, the messages
/// about wrong settings, `Config/keyway.yaml` and the table of Limits.md are derived from it.
///
/// swift-configuration was considered: it silently uses the default for a value of the wrong type, and cannot report
/// unknown settings.
extension Settings {
  /// The settings that most servers set. The defaults of the others follow from the machine, or suit as they are.
  static let first = [
    "host", "port", "names", "schema", "store", "durability", "public", "access.keys", "access.accounts",
    "access.origins", "log.access",
  ]

  /// All settings in the order of the file. Settings of one group are adjacent.
  static let all: [Setting] = [
    .text("host", \.api.host, "the address to listen on, or unix: and the path of a socket"),
    .number("port", \.api.port, 0...65_535, "the port to listen on; 0 takes a free one, and a socket has none"),
    .list("names", \.api.names, "host names to accept, besides localhost, 127.0.0.1, [::1] and host"),
    .text("access.keys", \.api.access.keys, "the file of keys that verify tokens, a JWK Set, or none"),
    .text("access.issuer", \.api.access.issuer, "the required iss of tokens, or none"),
    .text("access.audience", \.api.access.audience, "the audience that aud of tokens must have, or none"),
    .flag("access.accounts", \.api.access.accounts, "whether the store keeps accounts that sign in with a password"),
    .text(
      "access.accountPrefix", \.api.access.accountPrefix,
      "the text before the name of an account in sub, required beside access.keys; none = no text"),
    .number(
      "access.accountBytes", \.api.access.accountBytes, 1 << 16...1 << 40, "maximum bytes of accounts in the store"),
    .number(
      "access.sessionSeconds", \.api.access.sessionSeconds, 60...315_360_000, "seconds that a sign-in lasts"),
    .number("access.leewaySeconds", \.api.access.leewaySeconds, 0...3600, "seconds by which clocks may differ"),
    .number(
      "access.tokenSeconds", \.api.access.tokenSeconds, 0...10_000_000_000,
      "maximum lifetime of a token in seconds; 0 = unlimited"),
    .text("access.admin", \.api.access.admin, "CEL condition on identity: admins, who may do everything"),
    .text("access.nodes", \.api.access.nodes, "CEL condition on identity: nodes, which may follow and do nothing else"),
    .number(
      "access.staleSeconds", \.api.access.staleSeconds, 0...31_536_000,
      "seconds to serve identities without the leader or database; 0 = unlimited"),
    .list("access.origins", \.api.access.origins, "other origins whose pages may send requests"),
    .list(
      "access.proxies", \.api.access.proxies, "proxies (addresses, ranges, unix:) whose X-Forwarded-For is trusted"),
    .flag("access.open", \.api.access.open, "whether to serve without keys where they would be required"),
    .flag("access.openMetrics", \.api.access.openMetrics, "whether /metrics and /v1/status are open to everyone"),
    .number(
      "access.sessionBytes", \.api.access.sessions.bytes, 1 << 16...1 << 40, "maximum bytes of sessions in the store"),
    .number(
      "access.sessionsPerIdentity", \.api.access.sessions.perIdentity, 1...100_000, "maximum sessions of one identity"),
    .number(
      "access.requestsPerSecond", \.api.access.rates.requestsPerSecond, 0...1_000_000,
      "maximum requests per second of one client; 0 = unlimited"),
    .number(
      "access.rateClients", \.api.access.rates.clients, 1...10_000_000, "maximum clients whose requests are counted"),
    .number(
      "access.streams", \.api.access.streams, 0...1_000_000,
      "maximum streams per client; 0 = same as streams.perAddress"),
    .number("access.revocations", \.api.access.revocations, 0...10_000_000, "maximum revocations of tokens"),
    .text("nodes.url", \.api.cluster.url, "the URL of this node for other nodes; auto = its host and port"),
    .text("nodes.follow", \.api.cluster.follow, "the node to follow, http://host:port or https://host:port, or none"),
    .text("nodes.tokenFile", \.api.cluster.tokenFile, "the file of the token for requests to other nodes, or none"),
    .text("nodes.caFile", \.api.cluster.caFile, "the file of CA certificates of https nodes, in PEM, or none"),
    .text(
      "nodes.journal", \.api.cluster.journal,
      "the PostgreSQL database that nodes share, postgres://host/database, or none",
      masked: { $0 == ClusterOptions.none ? $0 : PostgresAddress.masked($0) }),
    .number(
      "nodes.staleSeconds", \.api.cluster.staleSeconds, 3...86_400,
      "seconds of silence of leader or database until this node is not ready"),
    .flag(
      "nodes.followers", \.api.cluster.followers, "whether other nodes may follow this one",
      formerNumber: "nodes.followersMaximum"),
    .number(
      "nodes.followersMaximum", \.api.cluster.followersMaximum, 0...100_000, "maximum nodes that follow this one"),
    .list("nodes.urls", \.api.cluster.urls, "URLs that other nodes may name as their own"),
    .number(
      "nodes.joinSeconds", \.api.cluster.joining.seconds, 0...86_400,
      "seconds to keep old records for a node that joins or is behind"),
    .number("nodes.joinBytes", \.api.cluster.joining.bytes, 0...1 << 40, "maximum bytes of commits written meanwhile"),
    .number(
      "nodes.forwarding", \.api.cluster.forwardedRequests, 1...1_000_000, "maximum requests that wait to be forwarded"),
    .number(
      "nodes.answerSeconds", \.api.cluster.forwarding.answerSeconds, 1...3600,
      "seconds to wait for the response to a forwarded request"),
    .number(
      "nodes.passedWrites", \.api.cluster.forwarding.remembered, 1_000...10_000_000,
      "maximum writes of other nodes that are remembered"),
    .number(
      "nodes.streams", \.api.cluster.forwarding.streams, 0...1_000_000, "maximum relayed streams of other nodes"),
    .number(
      "nodes.streamsPerClient", \.api.cluster.forwarding.streamsPerClient, 0...1_000_000,
      "maximum relayed streams of one client"),
    .number("nodes.waitSeconds", \.api.waits.seconds, 0...3600, "seconds to wait for the state that a request names"),
    .number("nodes.waiting", \.api.waits.requests, 0...1_000_000, "maximum requests that wait for a state"),
    .number(
      "nodes.waitingPerClient", \.api.waits.requestsPerClient, 0...1_000_000, "maximum such requests of one client"),
    .flag("console", \.api.files.console, "whether browsers get the console at /"),
    .text("public", \.api.files.folder, "a folder of an application's own files, served at /, or none"),
    .number("files.open", \.api.files.openFiles.files, 1...100_000, "maximum files of the folder that are being sent"),
    .number(
      "files.openPerClient", \.api.files.openFiles.filesPerClient, 1...100_000, "maximum such files of one client"),
    .choice("log.level", \.logLevel, "the minimum level of log entries"),
    .choice("log.format", \.logFormat, "the format of log entries, one line each"),
    .choice("log.access", \.api.accessLog, "which requests and ended streams are logged"),
    .flag("log.accessIdentities", \.api.accessLogIdentities, "whether those lines have the sub of the identity"),
    .number("log.bytes", \.logBytes, 4096...1 << 30, "maximum bytes of log lines that wait for the log's reader"),
    .number(
      "log.conditionSeconds", \.api.conditionSeconds, 1...86_400,
      "seconds without an occurrence until a condition has ended"),
    .text("schema", \.schema, "the schema file, or example for the embedded one"),
    .text("seed", \.seed, "JSON lines for an empty store: a path, none, or auto (the example's with its schema)"),
    .text("store", \.store, "the directory of the store, or memory"),
    .choice(
      "durability", \.durability, "synced: writes are acknowledged when on disk; relaxed: durabilityWindow earlier"),
    .number(
      "durabilityWindow.milliseconds", \.durabilityWindowMilliseconds, 1...60_000,
      "milliseconds of writes that a power cut may lose"),
    .number(
      "history.revisions", \.api.store.historyRevisions, 1...10_000_000, "maximum commits kept for resuming streams"),
    .number("history.bytes", \.api.store.historyBytes, 1 << 16...1 << 40, "maximum memory of these commits"),
    .number(
      "history.seconds", \.api.store.historySeconds, 0...31_536_000,
      "maximum age of these commits in seconds; 0 = unlimited"),
    .number("snapshot.revisions", \.api.store.snapshotRevisions, 10...100_000_000, "commits between two snapshots"),
    .number("snapshot.bytes", \.api.store.snapshotBytes, 1 << 16...1 << 40, "bytes of journal between two snapshots"),
    .number("connections.maximum", \.api.server.connections, 1...1_000_000, "maximum open connections"),
    .number(
      "connections.perAddress", \.api.server.connectionsPerAddress, 1...1_000_000,
      "maximum open connections of one address"),
    .number(
      "connections.ipv6PrefixBits", \.api.server.ipv6PrefixBits, 32...128,
      "leading bits of an IPv6 address that identify a client"),
    .number(
      "connections.timePercent", \.api.server.timePercent, 1...100,
      "maximum percentage of thread time for one address while others wait"),
    .number("request.headerBytes", \.api.server.headerBytes, 1024...65_536, "maximum bytes of the head of a request"),
    .number("request.bodyBytes", \.api.server.bodyBytes, 1024...1 << 30, "maximum bytes of the body of a request"),
    .number(
      "request.steps", \.api.requestSteps, 1000...10_000_000_000, "maximum steps to read what a request asks for"),
    .number("request.seconds", \.api.server.requestSeconds, 1...3600, "maximum seconds until a request has arrived"),
    .number(
      "memory.bytes", \.api.memory.bytes, 0...1 << 50, "memory limit of the process; 0 = 3/4 of what is available"),
    .number(
      "memory.clientBytes", \.api.memory.clientBytes, 0...1 << 50,
      "maximum memory held for one client; 0 = half of the total"),
    .number("keepAlive.seconds", \.api.server.keepAliveSeconds, 1...3600, "maximum idle seconds of a connection"),
    .number(
      "http.threads", \.api.threads, 0...256,
      "threads for requests and for long requests, each, and half as many for streams; 0 = one per core"),
    .number("requests.waiting", \.api.waitingRequests, 1...1_000_000, "maximum long requests that wait for a thread"),
    .number("heartbeat.seconds", \.api.heartbeatSeconds, 1...3600, "seconds of silence on a stream before a heartbeat"),
    .number("streams.maximum", \.api.server.streams, 1...1_000_000, "maximum open streams"),
    .number("streams.perAddress", \.api.server.streamsPerAddress, 1...1_000_000, "maximum open streams of one address"),
    .number("streams.opening", \.api.streams.opening, 1...1_000_000, "maximum streams waiting to resume, or to query"),
    .number(
      "streams.openingPerAddress", \.api.streams.openingPerAddress, 1...1_000_000,
      "maximum such streams of one address"),
    .number(
      "streams.resumeSeconds", \.api.streams.resumeSeconds, 0...86_400, "seconds that a cut stream can be resumed"),
    .number("streams.cut", \.api.streams.cut, 1...1_000_000, "maximum cut streams whose cells are kept"),
    .number("streams.cutPerAddress", \.api.streams.cutPerAddress, 1...1_000_000, "maximum such streams of one address"),
    .number("streams.cells", \.api.streams.cells, 1...100_000, "maximum cells of a stream"),
    .number("streams.keyPaths", \.api.streams.keyPaths, 1...10_000, "maximum key paths of a stream or a cell"),
    .number(
      "streams.pendingBytes", \.api.server.pendingBytesPerStream, 4096...1 << 30,
      "maximum bytes of unsent events of a stream"),
    .number(
      "streams.replayBytes", \.api.streams.replayBytes, 4096...1 << 30,
      "maximum bytes of missed events for a resuming stream"),
    .number("streams.eventBytes", \.api.eventBytes, 4096...1 << 30, "maximum bytes of an event of a stream"),
    .number(
      "streams.changesPerEvent", \.api.store.changesPerObserver, 1...10_000_000,
      "maximum changes of one commit for a stream"),
    .number(
      "streams.stallSeconds", \.api.server.stallSeconds, 1...3600, "maximum seconds that a subscriber reads nothing"),
    .number(
      "streams.lifetimeSeconds", \.api.server.lifetimeSeconds, 0...31_536_000,
      "maximum age of a stream in seconds; 0 = unlimited"),
    .number("writes.queued", \.api.store.queuedWrites, 1...1_000_000, "maximum writes that wait for the writer"),
    .number("leases.maximum", \.api.store.leases, 0...1_000_000_000, "maximum objects with a lease"),
    .number("leases.perClient", \.api.store.leasesPerClient, 0...1_000_000_000, "maximum leases made by one client"),
    .number("objects.bytes", \.api.memory.objectBytes, 0...1 << 50, "memory limit of objects; 0 = 5/8 of memory.bytes"),
    .number(
      "objects.bytesPerClient", \.api.store.growthPerClient, 0...1 << 50,
      "maximum bytes that one client may add; 0 = unlimited"),
    .number(
      "object.bytes", \.api.store.transaction.objectBytes, 65_536...1 << 32 - 1,
      "maximum size of one object, about that of its JSON"),
    .number(
      "transaction.bytes", \.api.store.transaction.bytes, 65_536...1 << 40,
      "maximum bytes that one transaction writes"),
    .number(
      "transaction.steps", \.api.store.transaction.steps, 1000...10_000_000_000, "maximum steps of one transaction"),
    .number("patch.operations", \.api.requests.patchOperations, 1...1_000_000, "maximum operations of a JSON Patch"),
    .number(
      "transactions.operations", \.api.requests.transactionOperations, 1...1_000_000,
      "maximum operations of a transaction"),
    .number(
      "answer.objects", \.api.requests.answerObjects, 1...10_000_000, "maximum objects that one response expands to"),
    .number("answer.bytes", \.api.requests.answerBytes, 4096...1 << 40, "maximum bytes of one response"),
    .number(
      "journal.records", \.api.requests.journalRecords, 1...1_000_000, "maximum transactions of a journal response"),
    .number("journal.bytes", \.api.requests.journalBytes, 4096...1 << 30, "maximum bytes of a journal response"),
    .number("queries.maximum", \.api.store.queries, 1...10_000_000, "maximum distinct live queries"),
    .number("queries.perClient", \.api.store.queriesPerClient, 1...10_000_000, "maximum live queries of one client"),
    .number("queries.rows", \.api.store.queryRows, 1000...1_000_000_000, "maximum rows of all live queries together"),
    .number(
      "queries.rowsPerClient", \.api.store.queryRowsPerClient, 1000...1_000_000_000,
      "maximum rows of one client's live queries"),
    .number(
      "queries.commitSteps", \.api.store.queryCommitCost, 1000...10_000_000_000,
      "maximum steps of all live queries for a commit"),
    .number(
      "observations.commitSteps", \.api.store.observationCommitSteps, 1000...10_000_000_000,
      "maximum steps of all observations for the commits of one sync"),
    .number("fetch.limit", \.api.pages.objects, 1...100_000, "maximum objects on a page"),
    .number("fetch.pages", \.api.keptFetches, 1...100_000, "maximum fetches kept for their next pages"),
    .number(
      "fetch.pageBytes", \.api.pages.bytes, 1 << 16...1 << 40, "maximum memory of these fetches and their states"),
    .number("fetch.pageSeconds", \.api.pages.seconds, 1...86_400, "seconds that these fetches are kept"),
    .number(
      "idempotency.keys", \.api.idempotency.keys, 1...1_000_000, "maximum remembered requests with an Idempotency-Key"),
    .number(
      "idempotency.bytes", \.api.idempotency.bytes, 1 << 16...1 << 40,
      "maximum memory of these requests and their responses"),
    .number(
      "idempotency.clientPercent", \.api.idempotency.clientPercent, 1...100,
      "maximum percentage of either for one client"),
    .number(
      "idempotency.seconds", \.api.idempotency.seconds, 1...31_536_000, "seconds that these requests are remembered"),
    .number("drain.seconds", \.drainSeconds, 1...9, "maximum seconds that a stop waits for streams and requests"),
    .number("drain.noticeSeconds", \.drainNoticeSeconds, 0...3600, "seconds that /readyz is 503 before a stop begins"),
  ]

  /// Returns the setting with this name.
  static func setting(named name: String) -> Setting? { all.first { $0.name == name } }

  /// Returns the names of the settings of a group: those of `log` begin with `log.`.
  static func names(inGroup group: some StringProtocol) -> [String] {
    all.map(\.name).filter { $0.hasPrefix(group + ".") }
  }
}
