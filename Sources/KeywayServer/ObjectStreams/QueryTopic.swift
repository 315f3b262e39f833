import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// The live query that streams with the same request share.
final class QueryTopic: Topic {
  struct Key: Hashable {
    let query: Query
    let context: EchoedText?
  }

  /// The maximum number of rows of a result or a difference that is encoded under the lock.
  static let rowsUnderLock = 1000

  let key: Key
  let observer: ObserverID
  let services: StreamServices
  var subscribers = 0
  /// The client of each stream, which pays for the query together with the others.
  var clients: [StreamID: ClientAddress] = [:]
  /// The memory reserved for the rows, charged to the first client that opened a stream.
  var account: MemoryReservation?
  /// The number of contents delivered to its streams.
  private var contentCount = 0
  /// The lagging streams, whose readers are too slow: the contents that each misses, and `contentCount` when it began
  /// to lag.
  private var lagging: [StreamID: (missed: MissedContents, contentCount: Int)] = [:]
  /// The first event, encoded for the last revision at which a stream began.
  private var initialEvent: (revision: Revision, text: EventBuffer)?

  init(key: Key, observer: ObserverID, services: StreamServices) {
    self.key = key
    self.observer = observer
    self.services = services
  }

  var observationCount: Int { subscribers }
  var queries: [Query] { [key.query] }

  func context(ofCell cell: String?) -> String? { key.context?.text }

  func describe(in body: inout JSONObject) {
    body["kind"] = .string("query")
    key.query.words.describe(in: &body)
    body["context"] = key.context.map { .string($0.text) } ?? .null
    body["observations"] = .integer(1)
  }

  /// Returns the present result as the first event of a stream.
  func initialEvent(_ result: QueryResult, _ snapshot: Snapshot) -> EventBuffer {
    if let event = initialEvent, event.revision == snapshot.revision { return event.text }
    let text = services.encoder.initialEvent(result, key.context, snapshot)
    initialEvent = text.count <= services.keptEventBytes ? (snapshot.revision, text) : nil
    return text
  }

  func delivery(of event: StreamEvent, _ contents: inout StreamRegistry.Contents) -> Delivery? {
    for case .content(let encoded) in event.queries.map(\.body) {
      services.countNotifications(encoded.content.changes.count * subscribers)
      contentCount += 1
    }
    guard let bytes = services.encoder.bytes(of: event) else {
      return miss(event.revision)
    }
    return .channel(channel, bytes)
  }

  func missed(_ event: ObserverEvent) -> Delivery { miss(event.revision) }

  func unregister(_ publication: inout Publication) { publication.queries.remove(observer) }

  // MARK: Slow readers

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
    let last = firstMissed.lastNotified
    let shown = publication.queries.result(of: key.query, before: last + 1)
    let missed = MissedContents(
      shown: shown ?? QueryResult(nothingOf: key.query), since: last,
      count: publication.queries.contentCount(of: key.query, since: last + 1), isUnknown: shown == nil)
    lagging[id] = (missed, contentCount)
  }

  func endLag(_ id: StreamID) { lagging[id] = nil }

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork? {
    guard let entry = lagging[id], let result = publication.queries.result(of: key.query) else { return nil }
    var missed = entry.missed
    missed.count += contentCount - entry.contentCount
    let snapshot = publication.snapshot
    let catchUp = QueryCatchUp(missed: missed, context: key.context?.text, result: result, snapshot: snapshot)
    let rows = missed.isUnknown ? result.count : QueryContent.size(from: missed.shown, to: result)
    guard rows > Self.rowsUnderLock else {
      lagging[id] = nil
      services.postCatchUp(catchUp.encoded(services.encoder), to: id, at: snapshot.revision)
      return nil
    }
    lagging[id] = (MissedContents(shown: result, since: snapshot.revision), contentCount)
    return { [services] _, _ in
      services.hub.post([services.catchUp(catchUp.encoded(services.encoder), of: id, isLast: false)], position: nil)
    }
  }
}

/// The catch-up of a lagging stream of a live query that reads again.
private struct QueryCatchUp: Sendable {
  let missed: MissedContents
  let context: String?
  let result: QueryResult
  let snapshot: Snapshot

  /// Encodes the missed contents as one merged content or, if that is too long, as all rows.
  func encoded(_ encoder: EventEncoder) -> EventBuffer {
    let text = encoded(missed, encoder)
    guard text.isTooLong, !missed.isUnknown else { return text }
    var unknown = missed
    unknown.isUnknown = true
    return encoded(unknown, encoder)
  }

  private func encoded(_ missed: MissedContents, _ encoder: EventEncoder) -> EventBuffer {
    var event = StreamEvent(revision: snapshot.revision)
    let notification = missed.notification(
      cell: nil, context: context, to: result, in: snapshot.state, at: snapshot.revision, encoder)
    event.queries = notification.map { [$0] } ?? []
    var text = encoder.text()
    encoder.append(event, to: &text)
    return text
  }
}

extension Query.Words {
  /// Adds the members by which a client names a query.
  func describe(in body: inout JSONObject) {
    body["entity"] = .string(entity)
    body["filter"] = filter.map(Value.string) ?? .null
    body["sort"] = sort.map(Value.string) ?? .null
    body["section"] = section.map(Value.string) ?? .null
    body["limit"] = limit.map { .integer(Int64($0)) } ?? .null
    body["aggregate"] = aggregate.map(Value.string) ?? .null
    body["keys"] = keys.map { .array($0.map(Value.string)) } ?? .null
  }
}
