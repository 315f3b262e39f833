import HTTPServer
import HTTPTypes
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// Opens a stream of a live query, from the present rows or from where an earlier stream ended.
struct QueryStreamOpening: StreamOpening {
  /// A first event that was encoded without the lock.
  private struct EncodedResults {
    let result: QueryResult
    let revision: Revision
    let text: EventBuffer
  }

  private let request: QueryStreamRequest
  private let services: StreamServices
  /// The revision to resume from, or nil if the stream begins with the present rows.
  private let after: Revision?
  /// The query with its rows, once it has been evaluated. A dictionary, so that it is brought up to date in place: a
  /// copy would copy all rows.
  private var prepared: [Query: PreparedQuery] = [:]
  /// The encoded text of the first missed contents, and the number of these contents.
  private var replayed: (text: EventBuffer, contents: Int)
  private var encoded: EncodedResults?
  /// True if the store took over the rows, because the query was not watched before.
  private var isWatchedAnew = false

  /// Evaluates the query, unless it is watched already, and encodes its rows if they are many. Throws
  /// `malformed-filter` for a filter that costs too much.
  init(
    _ request: QueryStreamRequest, in store: Store, _ services: StreamServices, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    self.request = request
    self.services = services
    let query = request.query
    replayed = (services.encoder.text(limit: services.limits.replayBytes), 0)
    after = services.resumption(from: request.cursor, store.snapshot).revision
    guard after == nil else { return }
    prepared = try Problem.translating(try store.prepare([query], isAbandoned))
    let (watched, present) = store.withPublication { ($0.queries.result(of: query), $0.snapshot) }
    let snapshot = watched == nil ? prepared[query]?.snapshot ?? present : present
    guard let result = watched ?? prepared[query]?.result, result.count > QueryTopic.rowsUnderLock else { return }
    encoded = EncodedResults(
      result: result, revision: snapshot.revision,
      text: services.encoder.initialEvent(result, request.context, snapshot))
  }

  mutating func isReady(_ publication: borrowing Publication) -> Bool {
    guard let after, after >= publication.snapshot.oldestResumable else { return true }
    return publication.queries.isUntouched(request.query, since: after)
      || prepared[request.query].map { publication.isNear($0.revision) } ?? false
  }

  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    guard let after else { return }
    try Problem.translating { () throws(ModelError) in
      try store.prepare([request.query], after: after, history, &prepared, isAbandoned)
    }
    guard let contents = prepared[request.query]?.contents else { return }
    for content in contents.dropFirst(replayed.contents) where !replayed.text.isTooLong {
      append(content, to: &replayed.text)
      replayed.contents += 1
    }
  }

  func keepResults(in store: Store) {
    if let after, !isWatchedAnew { store.cacheResumedQueries(prepared, after: after) }
  }

  private func append(_ content: QueryContent, to text: inout EventBuffer) {
    let notification = QueryNotification(
      cell: nil, context: request.context?.text, body: .content(services.encoder.encoded(content)))
    services.encoder.append(notification, revision: content.revision, writer: content.writer, to: &text)
  }

  // MARK: Under the lock

  mutating func open(in registry: StreamRegistry, _ publication: inout Publication) throws(Problem) -> EventStream {
    let query = request.query
    isWatchedAnew = publication.queries.result(of: query) == nil
    if prepared[query] != nil { publication.bringUp(&prepared, query) }
    return try registry.contents.withLock { contents throws(Problem) in
      let key = QueryTopic.Key(query: query, context: request.context)
      let topic: QueryTopic =
        contents.topic(key) ?? QueryTopic(key: key, observer: contents.makeObserver(), services: services)
      var finished = try services.finish(query, prepared[query], for: request.client, publication)
      let account = try finished.flatMap { finished throws(Problem) in
        try services.reserve(finished.rowCount * StreamWeight.row, for: request.client)
      }
      let prelude = try beginning(of: topic, &finished, publication)
      let stream = try services.open(
        for: request.client, prelude: prelude, channel: topic.channel, overflow: request.overflow)
      if topic.subscribers == 0 {
        topic.account = account
        publication.watch(query, QueryObserver(id: topic.observer, cell: nil), finished)
      }
      publication.queries.charge(topic.observer, to: QueryPayer(request.client))
      contents.join(topic, stream.id, request.client)
      return stream
    }
  }

  /// Returns the text sent to the stream before any new event.
  private func beginning(
    of topic: QueryTopic, _ finished: inout PreparedQuery?, _ publication: borrowing Publication
  ) throws(Problem) -> EventBuffer {
    let snapshot = publication.snapshot
    var text = services.prelude()
    var resumption = services.resumption(from: request.cursor, snapshot)
    if case .after(let revision) = resumption {
      if let missed = try missed(after: revision, &finished, publication) {
        if !missed.isTooLong {
          if missed.isEmpty { text.append(EventEncoder.emptyBlock) } else { text.append(missed) }
          return text
        }
        resumption = .reset(.overflow)
      } else {
        resumption = .reset(.compacted)
      }
    }
    if case .reset(let reason) = resumption {
      services.encoder.appendReset(reason, revision: snapshot.revision, to: &text)
    }
    guard let result = finished?.result ?? publication.queries.result(of: request.query) else { return text }
    guard let encoded else {
      text.append(topic.initialEvent(result, snapshot))
      return text
    }
    text.append(encoded.text)
    let content = QueryContent(
      from: encoded.result, at: encoded.revision, to: result, in: snapshot.state, at: snapshot.revision)
    if !content.isEmpty { append(content, to: &text) }
    return text
  }

  /// Returns the encoded contents that were missed after a revision, or nil if they are no longer known.
  private func missed(
    after revision: Revision, _ finished: inout PreparedQuery?, _ publication: borrowing Publication
  ) throws(Problem) -> EventBuffer? {
    let replay = try Problem.translating(
      try publication.replay(request.query, prepared[request.query], after: revision))
    guard let replay else { return nil }
    if finished != nil { finished = replay }
    var text = replayed.text
    for content in replay.contents.dropFirst(replayed.contents) { append(content, to: &text) }
    return text
  }
}

extension StreamServices {
  /// Returns a query with its rows, or nil if it is watched already. Throws `too-many-queries`, and `malformed-filter`
  /// for a filter that costs too much.
  func finish(
    _ query: Query, _ prepared: PreparedQuery?, for client: ClientAddress, _ publication: borrowing Publication
  ) throws(Problem) -> PreparedQuery? {
    guard publication.queries.result(of: query) == nil else { return nil }
    try checkRoom(rows: 0, for: client, publication)
    let finished = try Problem.translating(try publication.finish(query, prepared))
    try checkRoom(rows: finished.rowCount, for: client, publication)
    return finished
  }

  /// Throws `too-many-queries` if a client may not have one more live query with this number of rows.
  func checkRoom(rows: Int, for client: ClientAddress, _ publication: borrowing Publication) throws(Problem) {
    let payer = QueryPayer(client)
    guard let refusal = publication.refusal(ofQueryWithRows: rows, for: payer) else { return }
    throw Problem(refusal, publication.queries.holding(of: payer), publication)
  }
}

extension Problem {
  /// Creates the problem of a client with these live queries that may not open another one.
  fileprivate init(_ refusal: QueryRefusal, _ holding: QueryHolding, _ publication: borrowing Publication) {
    let limits = publication.limits
    switch refusal {
    case .queries(.perClient):
      self.init(
        .tooManyQueries,
        "this client has \(holding.queries) live queries open, and queries.perClient allows \(limits.queriesPerClient)",
        status: .tooManyRequests)
    case .rows(.perClient):
      self.init(
        .tooManyQueries,
        "the live queries of this client would have more than the \(limits.queryRowsPerClient) rows of "
          + "queries.rowsPerClient",
        status: .tooManyRequests)
    case .queries(.total):
      self.init(
        .tooManyQueries,
        "\(publication.queries.count) of the \(limits.queries) live queries of queries.maximum are open, "
          + "\(holding.queries) by this client; its share of the rest is used up")
    case .rows(.total):
      self.init(
        .tooManyQueries,
        "live queries have \(publication.queries.rowCount) of the \(limits.queryRows) rows of queries.rows, "
          + "\(holding.rows) for this client; its share of the rest is too small for this query")
    }
  }
}
