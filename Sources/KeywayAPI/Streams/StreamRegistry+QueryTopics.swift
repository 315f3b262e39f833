package import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Streams of one live query.
extension StreamRegistry {
  /// What a client asks for with `GET /v1/objects/{Entity}` as a stream.
  package struct QueryRequest: Sendable {
    /// The query.
    package let query: Query
    /// Given back with every event.
    package let context: EchoedText?
    /// The cursor to go on from, as it came.
    package let cursor: String?
    /// What becomes of it when its reader is slow.
    package let overflow: OverflowPolicy

    /// A request as it was read.
    package init(query: Query, context: EchoedText?, cursor: String?, overflow: OverflowPolicy) {
      self.query = query
      self.context = context
      self.cursor = cursor
      self.overflow = overflow
    }
  }

  /// Results of more rows than this are encoded before anything is locked.
  private static let rowsUnderLock = 1000

  /// The revision after which a stream goes on, where its cursor can be resumed: for `Store.prepare`.
  package func resumedRevision(_ cursor: String?, _ snapshot: Snapshot) -> Revision? {
    let resumption = Resumption(
      cursor: cursor, epoch: encoder.epoch, oldest: snapshot.oldestResumable, present: snapshot.revision)
    guard case .after(let revision) = resumption else { return nil }
    return revision
  }

  /// A first event that was encoded while others wrote.
  package struct EncodedResults: Sendable {
    let result: QueryResult
    let revision: Revision
    let bytes: [UInt8]
  }

  /// Encodes the first event of a stream that is opened next, where there is much to encode. Takes no lock.
  package func encodeResults(_ request: QueryRequest, _ result: QueryResult, _ snapshot: Snapshot) -> EncodedResults? {
    guard result.count > Self.rowsUnderLock else { return nil }
    let bytes = initialEvent(request.context, result, snapshot)
    return EncodedResults(result: result, revision: snapshot.revision, bytes: bytes)
  }

  /// The same for a query that nobody watches yet.
  package func encodeResults(_ request: QueryRequest, _ prepared: PreparedQuery) -> EncodedResults? {
    encodeResults(request, prepared.result, prepared.snapshot)
  }

  /// Opens a stream. Throws `too-many-queries`, `too-many-streams`, and `malformed-filter` for a filter that costs too
  /// much, before anything is registered.
  package func open(
    _ request: QueryRequest, prepared: PreparedQuery?, encoded: EncodedResults?, _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    var resumed = ResumedQuery()
    resumed.prepared[request.query] = prepared
    return try open(request, &resumed, encoded: encoded, &publication)
  }

  /// The same, with what was worked out before for a client that comes back.
  func open(
    _ request: QueryRequest, _ resumed: inout ResumedQuery, encoded: EncodedResults?, _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    // Where it stands: a copy would be one of all rows.
    if resumed.prepared[request.query] != nil { publication.bringUp(&resumed.prepared, request.query) }
    let resumed = resumed
    return try contents.withLock { contents throws(Problem) in
      let key = QueryTopic.Key(query: request.query, context: request.context)
      let topic = contents.queryTopics[key] ?? QueryTopic(key: key, observer: contents.makeObserver())
      var prelude = Array(retryLine.utf8)
      var live = try finish(request.query, resumed.prepared[request.query], publication)
      try appendBeginning(request, topic, &live, resumed, encoded, publication, to: &prelude)
      let stream = try openStream(prelude, topic.channel, overflow: request.overflow)
      if topic.members == 0 {
        publication.watch(request.query, QueryObserver(id: topic.observer, cell: nil), live)
        contents.queryTopics[key] = topic
        contents.queryTopicsByObserver[topic.observer] = topic
      }
      topic.members += 1
      contents.streams[stream.id] = .query(topic, secret: random())
      return stream
    }
  }

  /// Appends what the stream is told before anything new happens.
  private func appendBeginning(
    _ request: QueryRequest, _ topic: QueryTopic, _ live: inout PreparedQuery?, _ resumed: ResumedQuery,
    _ encoded: EncodedResults?, _ publication: borrowing Publication, to prelude: inout [UInt8]
  ) throws(Problem) {
    let snapshot = publication.snapshot
    let present = snapshot.revision
    var resumption = Resumption(
      cursor: request.cursor, epoch: encoder.epoch, oldest: snapshot.oldestResumable, present: present)
    if case .after(let revision) = resumption {
      let replayed = try Problem.translating { () throws(ModelError) in
        try publication.replay(request.query, resumed.prepared[request.query], after: revision)
      }
      if let replayed {
        if live != nil { live = replayed }
        var bytes = resumed.bytes
        for content in replayed.contents.dropFirst(resumed.encoded) {
          bytes += self.bytes(of: content, request.context)
        }
        guard bytes.count > limits.replayBytes else {
          prelude += bytes.isEmpty ? [UInt8(ascii: "\n")] : bytes
          return
        }
        resumption = .reset(.overflow)
      } else {
        resumption = .reset(.compacted)
      }
    }
    if case .reset(let reason) = resumption { encoder.appendReset(reason, revision: present, to: &prelude) }
    guard let result = live?.result ?? publication.queries.result(of: request.query) else { return }
    if let encoded {
      prelude += encoded.bytes
      let content = QueryContent(
        from: encoded.result, at: encoded.revision, to: result, in: snapshot.state, at: present)
      if !content.isEmpty { prelude += bytes(of: content, request.context) }
    } else if let event = topic.initialEvent, event.revision == present {
      prelude += event.bytes
    } else {
      let bytes = initialEvent(request.context, result, snapshot)
      topic.initialEvent = (present, bytes)
      prelude += bytes
    }
  }

  private func initialEvent(_ context: EchoedText?, _ result: QueryResult, _ snapshot: Snapshot) -> [UInt8] {
    var bytes: [UInt8] = []
    let news = QueryNews(
      cell: nil, context: context?.text, sort: .results(result, snapshot.state, isInitial: true))
    encoder.append(news, revision: snapshot.revision, to: &bytes)
    return bytes
  }

  private func bytes(of content: QueryContent, _ context: EchoedText?) -> [UInt8] {
    var bytes: [UInt8] = []
    let news = QueryNews(cell: nil, context: context?.text, sort: .content(encoder.encoded(content)))
    encoder.append(news, revision: content.revision, writer: content.writer, to: &bytes)
    return bytes
  }

  /// Encodes what was missed, as far as it is known. Takes no lock.
  func encode(_ request: QueryRequest, _ resumed: inout ResumedQuery) {
    guard let contents = resumed.prepared[request.query]?.contents else { return }
    for content in contents.dropFirst(resumed.encoded) where resumed.bytes.count <= limits.replayBytes {
      resumed.bytes += bytes(of: content, request.context)
      resumed.encoded += 1
    }
  }

  // MARK: Telling

  /// What a batch of commits tells, live queries included, in the order of revisions: what one commit did to the cells of
  /// one stream is one event of each sort.
  func deliveries(
    of events: [ObserverEvent], _ queryEvents: [QueryEvent], _ contents: inout Contents
  ) -> [Delivery] {
    var deliveries: [(revision: Revision, delivery: Delivery)] = []
    var cellEvents: [ObserverID: [Revision: StreamEvent]] = [:]
    for event in queryEvents {
      switch event.outcome {
      case .failed: deliveries += ends(of: event, &contents).map { (event.revision, $0) }
      case .content(let content):
        let encoded = encoder.encoded(content)
        for watcher in event.observers {
          if let topic = contents.queryTopicsByObserver[watcher.id] {
            deliveries.append((event.revision, delivery(of: content, encoded, to: topic, &contents)))
          } else if let cell = watcher.cell, let stream = contents.cellStreams[watcher.id] {
            cellEvents[watcher.id, default: [:]][
              event.revision, default: StreamEvent(revision: event.revision, writer: content.writer)
            ].queries.append(
              QueryNews(cell: cell, context: stream.cells[cell]?.binding.context?.text, sort: .content(encoded)))
          }
        }
      }
    }
    for event in events {
      if var told = cellEvents[event.observer]?.removeValue(forKey: event.revision), !event.hasOverflowed {
        told.changes = event.changes
        told.gone = event.gone
        cellEvents[event.observer]?[event.revision] = told
      } else if let delivery = delivery(of: event, &contents) {
        deliveries.append((event.revision, delivery))
      }
    }
    for (observer, events) in cellEvents {
      guard let stream = contents.cellStreams[observer] else { continue }
      for var event in events.values.sorted(by: { $0.revision < $1.revision }) {
        event.queries.sort { $0.cell ?? "" < $1.cell ?? "" }
        if let delivery = delivery(of: event, to: stream, &contents) { deliveries.append((event.revision, delivery)) }
      }
    }
    // What of one stream is of one revision is one delivery by now, so that their order does not matter.
    return deliveries.sorted { $0.revision < $1.revision }.map(\.delivery)
  }

  private func delivery(
    of content: QueryContent, _ encoded: EncodedContent, to topic: QueryTopic, _ contents: inout Contents
  ) -> Delivery {
    contents.toldChanges += UInt64(content.changes.count * topic.members)
    topic.told += 1
    var event = StreamEvent(revision: content.revision, writer: content.writer)
    event.queries = [QueryNews(cell: nil, context: topic.key.context?.text, sort: .content(encoded))]
    return .channel(topic.channel, self.encoded(event))
  }

  /// The filter of a query costs too much by now: its streams, and those with cells of it, are over.
  private func ends(of event: QueryEvent, _ contents: inout Contents) -> [Delivery] {
    event.observers.compactMap { watcher in
      if let topic = contents.queryTopicsByObserver[watcher.id] {
        forget(topic, &contents)
        return .endChannel(topic.channel, farewell("overflow"))
      }
      return contents.cellStreams[watcher.id]?.id.map { .endStream($0, farewell("overflow")) }
    }
  }
}
