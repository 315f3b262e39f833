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
    "host", "port", "names", "schema", "store", "durability", "public", "access.keys", "access.origins", "log.access",
  ]

  /// All settings in the order of the file. Settings of one group are adjacent.
  static let all: [Setting] = [
    .text("host", \.api.host, "the address to listen on, or unix: and the path of a socket"),
    .number("port", \.api.port, 0...65_535, "the port to listen on; 0 takes a free one, and a socket has none"),
    .list("names", \.api.names, "host names to answer to, besides localhost, 127.0.0.1, [::1] and host"),
    .text("access.keys", \.api.access.keys, "the file of the keys of tokens, a JWK Set, or none"),
    .text("access.issuer", \.api.access.issuer, "what iss of a token must be, or none"),
    .text("access.audience", \.api.access.audience, "what aud of a token must be or hold, or none"),
    .number("access.leewaySeconds", \.api.access.leewaySeconds, 0...3600, "by how much clocks may differ"),
    .number(
      "access.tokenSeconds", \.api.access.tokenSeconds, 0...10_000_000_000, "the longest life of a token; 0 is any"),
    .text("access.admin", \.api.access.admin, "CEL over identity: who meets it may do everything"),
    .text("access.nodes", \.api.access.nodes, "CEL over identity: who meets it may follow, and do nothing else"),
    .number(
      "access.staleSeconds", \.api.access.staleSeconds, 0...31_536_000,
      "serving identities without the leader or database; 0 is for ever"),
    .list("access.origins", \.api.access.origins, "other origins whose pages may call"),
    .list("access.proxies", \.api.access.proxies, "addresses, ranges, unix: whose X-Forwarded-For is believed"),
    .flag("access.open", \.api.access.open, "whether to serve without keys what would want them"),
    .flag("access.openMetrics", \.api.access.openMetrics, "whether /metrics and /v1/status want no admin"),
    .number("access.sessionBytes", \.api.access.sessions.bytes, 1 << 16...1 << 40, "sessions kept in the store"),
    .number("access.sessionsPerIdentity", \.api.access.sessions.perIdentity, 1...100_000, "sessions of one identity"),
    .number(
      "access.requestsPerSecond", \.api.access.rates.requestsPerSecond, 0...1_000_000,
      "requests of one client; 0 is any"),
    .number("access.rateClients", \.api.access.rates.clients, 1...10_000_000, "clients whose requests are counted so"),
    .number("access.streams", \.api.access.streams, 0...1_000_000, "streams of one; 0 is as streams.perAddress"),
    .number("access.revocations", \.api.access.revocations, 0...10_000_000, "revocations of tokens kept"),
    .text("nodes.url", \.api.cluster.url, "where other nodes reach this one; auto: its host and port"),
    .text("nodes.follow", \.api.cluster.follow, "the node to follow, http://host:port or https://host:port, or none"),
    .text("nodes.tokenFile", \.api.cluster.tokenFile, "the file of the token that nodes are shown, or none"),
    .text("nodes.caFile", \.api.cluster.caFile, "the certificates that https nodes are trusted by, PEM, or none"),
    .text(
      "nodes.journal", \.api.cluster.journal, "the PostgreSQL that nodes share, postgres://host/database, or none",
      masked: { $0 == ClusterOptions.none ? $0 : PostgresAddress.masked($0) }),
    .number(
      "nodes.staleSeconds", \.api.cluster.staleSeconds, 3...86_400,
      "silence of either after which this node is not ready"),
    .flag(
      "nodes.followers", \.api.cluster.followers, "whether other nodes may follow this one",
      formerNumber: "nodes.followersMaximum"),
    .number("nodes.followersMaximum", \.api.cluster.followersMaximum, 0...100_000, "nodes that follow this one"),
    .list("nodes.urls", \.api.cluster.urls, "addresses that other nodes may give as their own"),
    .number(
      "nodes.joinSeconds", \.api.cluster.joining.seconds, 0...86_400,
      "keeping old records for one that begins or is behind"),
    .number("nodes.joinBytes", \.api.cluster.joining.bytes, 0...1 << 40, "commits written meanwhile"),
    .number("nodes.forwarding", \.api.cluster.forwardedRequests, 1...1_000_000, "requests that wait to be passed on"),
    .number("nodes.answerSeconds", \.api.cluster.forwarding.answerSeconds, 1...3600, "waiting for the answer to one"),
    .number(
      "nodes.passedWrites", \.api.cluster.forwarding.remembered, 1_000...10_000_000, "writes of others, remembered"),
    .number(
      "nodes.streams", \.api.cluster.forwarding.streams, 0...1_000_000, "streams of other nodes that are sent on"),
    .number("nodes.streamsPerClient", \.api.cluster.forwarding.streamsPerClient, 0...1_000_000, "those of one client"),
    .number("nodes.waitSeconds", \.api.waits.seconds, 0...3600, "waiting for the state that a request names"),
    .number("nodes.waiting", \.api.waits.requests, 0...1_000_000, "requests that wait so"),
    .number("nodes.waitingPerClient", \.api.waits.requestsPerClient, 0...1_000_000, "those of one client"),
    .flag("console", \.api.files.console, "whether browsers get the console at /"),
    .text("public", \.api.files.folder, "a folder of an application's own files, served at /, or none"),
    .number("files.open", \.api.files.openFiles.files, 1...100_000, "such files that are being sent"),
    .number("files.openPerClient", \.api.files.openFiles.filesPerClient, 1...100_000, "those of one client"),
    .choice("log.level", \.logLevel, "the least severe entries that are logged"),
    .choice("log.format", \.logFormat, "how they are written, one line each"),
    .choice("log.access", \.api.accessLog, "which requests and ended streams get a line in the log"),
    .flag("log.accessIdentities", \.api.accessLogIdentities, "whether those lines have the sub of the identity"),
    .number("log.bytes", \.logBytes, 4096...1 << 30, "log lines that wait for the log's reader"),
    .number("log.conditionSeconds", \.api.conditionSeconds, 1...86_400, "quiet after which a condition has ended"),
    .text("schema", \.schema, "the schema file, or example: the one in the program"),
    .text("seed", \.seed, "JSON lines for an empty store: a path, none, or auto: the example's with its schema"),
    .text("store", \.store, "the directory where objects are kept, or memory"),
    .choice("durability", \.durability, "synced: writes are answered when on disk; relaxed: durabilityWindow earlier"),
    .number("durabilityWindow.milliseconds", \.durabilityWindowMilliseconds, 1...60_000, "what a power cut may take"),
    .number("history.revisions", \.api.store.historyRevisions, 1...10_000_000, "commits kept for resuming streams"),
    .number("history.bytes", \.api.store.historyBytes, 1 << 16...1 << 40, "memory for them"),
    .number("history.seconds", \.api.store.historySeconds, 0...31_536_000, "how long they are kept; 0 is for ever"),
    .number("snapshot.revisions", \.api.store.snapshotRevisions, 10...100_000_000, "commits from snapshot to snapshot"),
    .number("snapshot.bytes", \.api.store.snapshotBytes, 1 << 16...1 << 40, "journal from snapshot to snapshot"),
    .number("connections.maximum", \.api.server.connections, 1...1_000_000, "open connections"),
    .number("connections.perAddress", \.api.server.connectionsPerAddress, 1...1_000_000, "those of one address"),
    .number(
      "connections.ipv6PrefixBits", \.api.server.ipv6PrefixBits, 32...128,
      "first bits of an IPv6 address that make one client"),
    .number(
      "connections.timePercent", \.api.server.timePercent, 1...100,
      "of the time of the threads for requests for one address while others ask"),
    .number("request.headerBytes", \.api.server.headerBytes, 1024...65_536, "the head of a request"),
    .number("request.bodyBytes", \.api.server.bodyBytes, 1024...1 << 30, "the body of a request"),
    .number("request.steps", \.api.requestSteps, 1000...10_000_000_000, "steps to read what a request asks for"),
    .number("request.seconds", \.api.server.requestSeconds, 1...3600, "how long a request may take to arrive"),
    .number("memory.bytes", \.api.memory.bytes, 0...1 << 50, "what the process stays below; 0 is 3/4 of what there is"),
    .number(
      "memory.clientBytes", \.api.memory.clientBytes, 0...1 << 50, "what one client may hold; 0 is half of all's"),
    .number("keepAlive.seconds", \.api.server.keepAliveSeconds, 1...3600, "how long an open connection may be idle"),
    .number(
      "http.threads", \.api.threads, 0...256,
      "threads for requests, for long requests and for streams, each; 0 is one a core"),
    .number("requests.waiting", \.api.waitingRequests, 1...1_000_000, "long requests that wait for their threads"),
    .number("heartbeat.seconds", \.api.heartbeatSeconds, 1...3600, "silence on a stream before a heartbeat"),
    .number("streams.maximum", \.api.server.streams, 1...1_000_000, "open streams"),
    .number("streams.perAddress", \.api.server.streamsPerAddress, 1...1_000_000, "those of one address"),
    .number("streams.opening", \.api.streams.opening, 1...1_000_000, "streams waiting to resume, or to query"),
    .number("streams.openingPerAddress", \.api.streams.openingPerAddress, 1...1_000_000, "those of one address"),
    .number("streams.resumeSeconds", \.api.streams.resumeSeconds, 0...86_400, "how long a cut stream's cells are kept"),
    .number("streams.cut", \.api.streams.cut, 1...1_000_000, "cut streams whose cells are kept"),
    .number("streams.cutPerAddress", \.api.streams.cutPerAddress, 1...1_000_000, "those of one address"),
    .number("streams.cells", \.api.streams.cells, 1...100_000, "cells of a stream"),
    .number("streams.keyPaths", \.api.streams.keyPaths, 1...10_000, "key paths of a stream or a cell"),
    .number("streams.pendingBytes", \.api.server.pendingBytesPerStream, 4096...1 << 30, "unsent events of a stream"),
    .number("streams.replayBytes", \.api.streams.replayBytes, 4096...1 << 30, "missed events of one resuming stream"),
    .number("streams.eventBytes", \.api.eventBytes, 4096...1 << 30, "an event of a stream"),
    .number("streams.changesPerEvent", \.api.store.changesPerObserver, 1...10_000_000, "changes of a stream a commit"),
    .number("streams.stallSeconds", \.api.server.stallSeconds, 1...3600, "how long a subscriber may read nothing"),
    .number("streams.lifetimeSeconds", \.api.server.lifetimeSeconds, 0...31_536_000, "age of a stream; 0 is any"),
    .number("writes.queued", \.api.store.queuedWrites, 1...1_000_000, "writes that wait for the writer"),
    .number("leases.maximum", \.api.store.leases, 0...1_000_000_000, "objects that end by themselves"),
    .number("leases.perClient", \.api.store.leasesPerClient, 0...1_000_000_000, "those that one client has made so"),
    .number("objects.bytes", \.api.memory.objectBytes, 0...1 << 50, "memory for objects; 0 is 5/8 of memory.bytes"),
    .number("objects.bytesPerClient", \.api.store.growthPerClient, 0...1 << 50, "what one client may add; 0 is any"),
    .number("object.bytes", \.api.store.transaction.objectBytes, 65_536...1 << 32 - 1, "one object, about as its JSON"),
    .number("transaction.bytes", \.api.store.transaction.bytes, 65_536...1 << 40, "what one transaction writes"),
    .number("transaction.steps", \.api.store.transaction.steps, 1000...10_000_000_000, "the work of one transaction"),
    .number("patch.operations", \.api.requests.patchOperations, 1...1_000_000, "operations of a JSON Patch"),
    .number("transactions.operations", \.api.requests.transactionOperations, 1...1_000_000, "those of a transaction"),
    .number("answer.objects", \.api.requests.answerObjects, 1...10_000_000, "objects that one response expands to"),
    .number("answer.bytes", \.api.requests.answerBytes, 4096...1 << 40, "such a response"),
    .number("journal.records", \.api.requests.journalRecords, 1...1_000_000, "transactions of a journal response"),
    .number("journal.bytes", \.api.requests.journalBytes, 4096...1 << 30, "such a response"),
    .number("queries.maximum", \.api.store.queries, 1...10_000_000, "different live queries"),
    .number("queries.perClient", \.api.store.queriesPerClient, 1...10_000_000, "those of one client"),
    .number("queries.rows", \.api.store.queryRows, 1000...1_000_000_000, "rows of all live queries together"),
    .number("queries.rowsPerClient", \.api.store.queryRowsPerClient, 1000...1_000_000_000, "those of one client's"),
    .number(
      "queries.commitSteps", \.api.store.queryCommitCost, 1000...10_000_000_000,
      "steps of all live queries, for a commit"),
    .number(
      "observations.commitSteps", \.api.store.observationCommitSteps, 1000...10_000_000_000,
      "steps of all observations, for the commits of one sync"),
    .number("fetch.limit", \.api.pages.objects, 1...100_000, "objects on a page"),
    .number("fetch.pages", \.api.keptFetches, 1...100_000, "fetches kept for their next pages"),
    .number("fetch.pageBytes", \.api.pages.bytes, 1 << 16...1 << 40, "memory for them and what they keep alive"),
    .number("fetch.pageSeconds", \.api.pages.seconds, 1...86_400, "how long they are kept"),
    .number("idempotency.keys", \.api.idempotency.keys, 1...1_000_000, "requests with an Idempotency-Key, remembered"),
    .number("idempotency.bytes", \.api.idempotency.bytes, 1 << 16...1 << 40, "memory for them and their responses"),
    .number("idempotency.clientPercent", \.api.idempotency.clientPercent, 1...100, "of either for one client"),
    .number("idempotency.seconds", \.api.idempotency.seconds, 1...31_536_000, "how long they are remembered"),
    .number("drain.seconds", \.drainSeconds, 1...9, "how long a stop waits for streams and requests"),
    .number("drain.noticeSeconds", \.drainNoticeSeconds, 0...3600, "how long /readyz is 503 before a stop begins"),
  ]

  /// Returns the setting with this name.
  static func setting(named name: String) -> Setting? { all.first { $0.name == name } }

  /// Returns the names of the settings of a group: those of `log` begin with `log.`.
  static func names(inGroup group: some StringProtocol) -> [String] {
    all.map(\.name).filter { $0.hasPrefix(group + ".") }
  }
}
