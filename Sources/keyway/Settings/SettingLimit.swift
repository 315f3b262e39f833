/// The effect of a limit on those who reach it.
struct SettingLimit: Sendable {
  /// The kind of thing that a limit applies to, each on its own.
  enum Subject: String, Sendable {
    /// All clients together.
    case server
    /// A client: one identity, or one address if there is no token.
    case client
    case connection, request, object, transaction, stream, token
  }

  /// The name of the setting.
  let name: String
  /// The kind of thing that the limit applies to.
  let subject: Subject
  /// The effect of exceeding it, in the Markdown of Limits.md.
  let consequence: String

  init(_ name: String, of subject: Subject, _ consequence: String) {
    (self.name, self.subject, self.consequence) = (name, subject, consequence)
  }
}

/// The consequence of each limit, and the kind of thing that it applies to. Settings that are not limits are not listed
/// here.
extension SettingLimit {
  /// The limits in the order of the table of settings; Limits.md is written from both.
  static let all: [SettingLimit] = [
    SettingLimit(
      "access.leewaySeconds", of: .server, "a token that expired longer ago is refused: 401 `unauthenticated`"),
    SettingLimit(
      "access.tokenSeconds", of: .token,
      "401 `unauthenticated`: its `exp` is further behind its `iat`, or from now where it has none"),
    SettingLimit(
      "access.staleSeconds", of: .server,
      "503 `leader-unreachable` or `store-unavailable` for requests with an identity; others and open streams go on"),
    SettingLimit(
      "access.sessionBytes", of: .server,
      """
      503 `overloaded`; the session does not begin. Tokens and sessions that were verified are remembered with a \
      sixteenth of it beside; the oldest are verified again when they come
      """),
    SettingLimit("access.accountBytes", of: .server, "503 `overloaded`, and the account is not made or changed"),
    SettingLimit("access.sessionSeconds", of: .token, "the session ends: 401 `unauthenticated`"),
    SettingLimit("access.sessionsPerIdentity", of: .client, "the oldest session of the same identity ends"),
    SettingLimit(
      "access.requestsPerSecond", of: .client,
      """
      429 `too-many-requests` with `Retry-After`; as many may come at once. `/healthz`, `/readyz`, `/metrics` and \
      `OPTIONS` do not count
      """),
    SettingLimit(
      "access.rateClients", of: .server, "those whose last requests count least are counted from the beginning"),
    SettingLimit("access.streams", of: .client, "429 `too-many-streams` with `Retry-After`"),
    SettingLimit(
      "access.revocations", of: .server, "503 `overloaded`, and nothing is revoked until others have been lifted"),
    SettingLimit(
      "nodes.followersMaximum", of: .server, "503 `overloaded` with `Retry-After`; that node does not follow"),
    SettingLimit(
      "nodes.joinSeconds", of: .server, "they are forgotten; a node that lacks them begins anew with a copy"),
    SettingLimit("nodes.joinBytes", of: .server, "the same"),
    SettingLimit(
      "nodes.forwarding", of: .server,
      "503 `overloaded` with `Retry-After`; the write did not happen. One client has a quarter of them"),
    SettingLimit(
      "nodes.answerSeconds", of: .request,
      """
      503 `leader-unreachable` with `Retry-After`; the write may have been done
      """),
    SettingLimit(
      "nodes.staleSeconds", of: .server,
      """
      `/readyz` is 503 and writes are 503 `leader-unreachable` or `store-unavailable`, reading goes on
      """),
    SettingLimit(
      "nodes.passedWrites", of: .server,
      """
      the oldest is forgotten; a write that another node has named before that is 503 `store-unavailable` when it is \
      asked for again
      """),
    SettingLimit(
      "nodes.streams", of: .server, "503 `overloaded` with `Retry-After`; the stream is there, at its own node"),
    SettingLimit("nodes.streamsPerClient", of: .client, "the same, for this client alone"),
    SettingLimit("nodes.waitSeconds", of: .request, "503 `behind` with `Retry-After`"),
    SettingLimit("nodes.waiting", of: .server, "503 `behind` with `Retry-After`, at once"),
    SettingLimit("nodes.waitingPerClient", of: .client, "503 `behind` with `Retry-After`, at once"),
    SettingLimit("files.open", of: .server, "503 `overloaded` with `Retry-After`; files of up to 32 KiB do not count"),
    SettingLimit("files.openPerClient", of: .client, "the same"),
    SettingLimit("log.access", of: .server, "see <doc:Operating>"),
    SettingLimit(
      "log.bytes", of: .server,
      """
      further lines are dropped, counted in `keyway_log_lines_dropped_total`, and told of in the log later
      """),
    SettingLimit("log.conditionSeconds", of: .server, "the end of the condition is logged: see <doc:Operating>"),
    SettingLimit(
      "durabilityWindow.milliseconds", of: .server,
      """
      with `durability: relaxed` a write is on the disk by then; with `synced` before it is answered
      """),
    SettingLimit(
      "history.revisions", of: .server,
      """
      the oldest commits are dropped; a stream that resumes from before them receives `reset`, `compacted`
      """),
    SettingLimit("history.bytes", of: .server, "the same"),
    SettingLimit("history.seconds", of: .server, "the same"),
    SettingLimit(
      "snapshot.revisions", of: .server,
      """
      a snapshot of all objects is written, and the journal drops what neither a start nor the history needs
      """),
    SettingLimit("snapshot.bytes", of: .server, "the same"),
    SettingLimit(
      "connections.maximum", of: .server,
      """
      is closed as soon as it is accepted, without an answer: reading a request from it is what the limit saves. The \
      last eighth is left to addresses that have few, so that newcomers and health checks get in
      """),
    SettingLimit(
      "connections.perAddress", of: .client,
      """
      the same. Where the process may have fewer descriptors than `connections.maximum` wants, an address has at \
      most seven eighths of what it may
      """),
    SettingLimit(
      "connections.ipv6PrefixBits", of: .server,
      """
      is the same client, since a host may use every address of its network: wherever a client is counted by its \
      address, in a connection and in `X-Forwarded-For`. IPv4 addresses, and trusted proxies, count one by one
      """),
    SettingLimit(
      "connections.timePercent", of: .client,
      """
      is read later, and its new connections are begun later: counted by five-hundredths of a second, so that others \
      find the threads free again soon. What other threads take to prepare, apply and answer its large writes counts \
      too. An address that is alone, or of `access.proxies`, is not held up
      """),
    SettingLimit(
      "request.headerBytes", of: .request,
      """
      431 `headers-too-large`, 414 `uri-too-long` where the first line alone is over it, and the connection ends. An \
      eighth of it, and at least 512 bytes, is for the head of the response; each field and each cookie takes 64 \
      bytes more, out of one half
      """),
    SettingLimit("request.bodyBytes", of: .request, "413 `content-too-large`"),
    SettingLimit(
      "request.steps", of: .request,
      """
      429 `too-many-steps`: objects that are looked at, steps of expressions, members that are folded, comparisons \
      of a sort, whatever the request reads them for. Live queries that one request opens are 400 \
      `malformed-filter`; for these an object counts a step, and a row ten more
      """),
    SettingLimit("request.seconds", of: .request, "the connection is cut: a request must arrive whole within it"),
    SettingLimit(
      "memory.bytes", of: .server,
      """
      503 `overloaded` with `Retry-After` for what a client wants to have held over it: see below
      """),
    SettingLimit("memory.clientBytes", of: .client, "the same, for this client alone"),
    SettingLimit("keepAlive.seconds", of: .connection, "an idle connection is closed"),
    SettingLimit(
      "requests.waiting", of: .server,
      """
      503 `overloaded` with `Retry-After`; requests that read little never wait for them. One client has a quarter of \
      them. There are as many threads as `http.threads` says, at least two: a client has all but one, and half while \
      another client waits
      """),
    SettingLimit("streams.maximum", of: .server, "503 `too-many-streams` with `Retry-After`"),
    SettingLimit(
      "streams.perAddress", of: .client,
      """
      429 `too-many-streams` with `Retry-After`: other addresses are still served
      """),
    SettingLimit(
      "streams.opening", of: .server,
      """
      503 `overloaded` with `Retry-After`: so many streams that resume, or so many with live queries, wait to be \
      opened. Two threads open those of each sort, one of them at most for one address
      """),
    SettingLimit(
      "streams.openingPerAddress", of: .client,
      """
      the same: streams of other addresses still wait. Addresses take turns, whatever waits for each
      """),
    SettingLimit(
      "streams.resumeSeconds", of: .stream,
      "the stream is forgotten, and 404 `unknown-stream`: its client opens a new one. With 0 no cut stream is kept"),
    SettingLimit("streams.cut", of: .server, "the oldest of the client that has most is forgotten"),
    SettingLimit("streams.cutPerAddress", of: .client, "the client's oldest is forgotten"),
    SettingLimit("streams.cells", of: .stream, "429 `too-many-cells`"),
    SettingLimit("streams.keyPaths", of: .stream, "429 `too-many-key-paths`, for each stream and each cell"),
    SettingLimit(
      "streams.pendingBytes", of: .stream,
      """
      nothing more is queued for the stream; its subscriber receives what it missed in one event when it reads \
      again: see <doc:LiveQueries>. With `?overflow=disconnect` what was not sent is dropped, the stream gets `bye` \
      with reason `overflow` and ends
      """),
    SettingLimit(
      "streams.replayBytes", of: .stream,
      """
      a resumption that missed more gets `reset`, `overflow`, and the present state
      """),
    SettingLimit(
      "streams.eventBytes", of: .stream,
      """
      what one commit did to a stream, counted while it is put together, is not sent: the stream is treated as slow \
      and receives what it missed, merged, in one event, or the present state where that is too long; where that is \
      too long as well, `bye`, `overflow`. A stream or cells that would begin with more: 429 `too-many-bytes`, \
      nothing is opened or bound
      """),
    SettingLimit(
      "streams.changesPerEvent", of: .stream,
      """
      a stream to which one commit would send more is sent none of it: `bye`, `overflow`
      """),
    SettingLimit("streams.stallSeconds", of: .stream, "the connection is cut"),
    SettingLimit("streams.lifetimeSeconds", of: .stream, "`bye` with reason `lifetime`"),
    SettingLimit(
      "writes.queued", of: .server,
      "503 `overloaded` with `Retry-After`; the write did not happen. One client has seven eighths of them"),
    SettingLimit(
      "objects.bytes", of: .server,
      """
      503 `overloaded` with `Retry-After` for a write that makes the objects larger, and nothing was changed; one that \
      makes them smaller, or leaves them as large, is taken: see below
      """),
    SettingLimit(
      "objects.bytesPerClient", of: .client,
      """
      the same, for this client alone: what its writes have added since the start, less what they have taken away
      """),
    SettingLimit(
      "object.bytes", of: .object,
      """
      413 `content-too-large` with `object`; one that is larger already may still shrink
      """),
    SettingLimit(
      "transaction.bytes", of: .transaction,
      """
      413 `content-too-large`, with `operation` in a transaction; what a JSON Patch copies counts, also where it \
      removes it again
      """),
    SettingLimit(
      "transaction.steps", of: .transaction,
      """
      429 `too-many-steps`: an object that is written is 8 steps, a value that a JSON Patch looks at 1, and so are \
      16 bytes that are written or replaced, 16 elements of an array that move, and a member that comes or goes
      """),
    SettingLimit("patch.operations", of: .request, "429 `too-many-operations`"),
    SettingLimit(
      "transactions.operations", of: .transaction,
      """
      429 `too-many-operations`; objects that are made in place count
      """),
    SettingLimit(
      "answer.objects", of: .request,
      """
      429 `too-many-objects`: objects that `expand` writes, or members that a key path reads of a to-many behind \
      another
      """),
    SettingLimit(
      "answer.bytes", of: .request,
      """
      429 `too-many-bytes`, as soon as so much is encoded; the echo of a write is left out instead
      """),
    SettingLimit(
      "journal.records", of: .request,
      """
      waits for the next request: a response of `/v1/journal` in lines has so many; a larger `limit` is 400 \
      `malformed-query`
      """),
    SettingLimit("journal.bytes", of: .request, "the same; one transaction that is larger goes alone"),
    SettingLimit(
      "queries.maximum", of: .server,
      """
      503 `too-many-queries` with `Retry-After`; more subscribers of one live query cost none
      """),
    SettingLimit(
      "queries.perClient", of: .client,
      """
      429 `too-many-queries` with `Retry-After`; a live query that several clients have open counts for each of them
      """),
    SettingLimit(
      "queries.rows", of: .server,
      """
      the same, where a query that is opened would bring all live queries over so many rows together
      """),
    SettingLimit(
      "queries.rowsPerClient", of: .client,
      "429 `too-many-queries` likewise; rows of a live query that several clients have open count for each of them"),
    SettingLimit(
      "queries.commitSteps", of: .server,
      """
      clients take turns, those that have used least first; the streams of queries that are left over, those of who \
      asks for most, get `bye`, `overflow`, and resume; each object of the commit but the first adds 100. One live \
      query takes four times as many at most, however many objects a commit has: its streams get `bye`, `overflow` too
      """),
    SettingLimit(
      "observations.commitSteps", of: .server,
      """
      each object, key path and identity is evaluated once for a commit, a change takes 250 steps more, and clients \
      take turns, those that have used least first; the streams that are left over miss what is committed with it, and \
      get one merged change as soon as it is worked out; each object that is written but the first adds 100
      """),
    SettingLimit("fetch.limit", of: .request, "400 `malformed-query`"),
    SettingLimit(
      "fetch.pages", of: .server,
      """
      the oldest fetch of the client with the largest share gives way, if that is more than the new one would have: \
      its next page is 410 `page-expired`; otherwise the client's own oldest, and a client that has none gets 503 \
      `overloaded` with `Retry-After`. One client has a sixteenth of them, and over that its own oldest gives way
      """),
    SettingLimit(
      "fetch.pageBytes", of: .server,
      """
      as with `fetch.pages`; by what is written meanwhile, the fetch of the oldest state is forgotten
      """),
    SettingLimit("fetch.pageSeconds", of: .server, "the fetch is forgotten"),
    SettingLimit(
      "idempotency.keys", of: .server,
      """
      503 `overloaded` with `Retry-After`, and nothing was changed: no key is forgotten within its time
      """),
    SettingLimit(
      "idempotency.bytes", of: .server,
      """
      the same, of keys and responses, each with 512 bytes for its upkeep, and of the room that is held for a \
      response to come; a request that alone is over a client's share is 413 `content-too-large`, and of a response \
      that is longer than the room the body is left out
      """),
    SettingLimit(
      "idempotency.clientPercent", of: .client,
      """
      the same, to this client; what was restored at a start counts for no client. Behind a proxy that \
      `access.proxies` does not name, all without a token are one client, and 100 gives it everything
      """),
    SettingLimit(
      "idempotency.seconds", of: .server,
      """
      the response is forgotten, and its retry is a request of its own
      """),
    SettingLimit(
      "leases.maximum", of: .server,
      """
      503 `too-many-leases`: an object that has a lease may be given another, no other object any. The leases of a \
      store that is read back stay
      """),
    SettingLimit(
      "leases.perClient", of: .client,
      """
      429 `too-many-leases-of-client`; a lease counts for the client that made it, also where another renews it, and \
      after a restart for none
      """),
    SettingLimit(
      "drain.seconds", of: .server,
      """
      streams that did not read their `bye`, and requests that are not answered, are cut
      """),
    SettingLimit(
      "drain.noticeSeconds", of: .server,
      """
      the stop begins, which takes `drain.seconds` at most; with 0 at once
      """),
  ]
}
