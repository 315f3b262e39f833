import CEL
package import HTTPServer
package import KeyValueModel
package import KeyValueObserving
package import Store
import Support

/// Every open stream with its subscription, and the way of events from the store to the hub. It knows no kind of
/// stream, only that what one commit did to the cells and live queries of one stream is one delivery.
///
/// `contents` is guarded by its lock, which is taken while the publication's lock is held or with no other: opening a
/// stream takes the publication that its caller has locked, so that what a stream is sent first and what follows belong
/// together. A subscription's own lock is taken inside; `lagReports` last, with no other lock inside.
package final class StreamRegistry: StorePublisher, Sendable {
  struct Contents {
    var subscriptions: [StreamID: any Subscription] = [:]
    var receivers: [ObserverID: any CommitReceiver] = [:]
    /// What streams share that ask for the same.
    var topics: [AnyHashable: any Topic] = [:]
    /// Streams with cells whose connection was cut.
    var cut = CutStreams()
    /// The connections of streams that were resumed, by the names that the streams have had from the beginning.
    var connections: [StreamID: StreamID] = [:]
    /// How many bytes of events the present batch of commits has for the cells of each client.
    var batchBytes: [ClientAddress: Int] = [:]
    private var lastObserver: UInt64 = 0

    mutating func makeObserver() -> ObserverID {
      lastObserver += 1
      return ObserverID(lastObserver)
    }
  }

  /// How many streams, cells and observations there are.
  package struct Counts: Hashable, Sendable {
    /// Open streams of every sort.
    package var streams = 0
    /// Streams without a connection, which their clients may resume. They count nowhere else.
    package var cutStreams = 0
    /// Cells, bound or not.
    package var cells = 0
    /// Different live queries that are watched.
    package var queries = 0
    /// What is observed, each registration counted.
    package var observations = 0
    /// Changes that subscribers were notified of, each stream counted.
    package var notifications: UInt64 = 0
  }

  package let services: StreamServices
  /// For whom the streams were opened.
  let owners = StreamOwners()
  let contents = Locked(Contents())
  /// Streams that have said that they miss events, and since which, before that is dealt with.
  private let lagReports = Locked<[StreamID: StreamPosition]>([:])

  /// A registry without streams. `random` gives unguessable numbers: names of streams and the jitter of `retry:` come
  /// from it.
  package convenience init(
    hub: StreamHub, ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max), epoch: String,
    limits: StreamLimits, random: @escaping @Sendable () -> UInt64
  ) {
    self.init(StreamServices(hub: hub, ledger: ledger, epoch: epoch, limits: limits, random: random))
  }

  init(_ services: StreamServices) {
    self.services = services
  }

  /// Counts everything.
  package var counts: Counts {
    contents.withLock { contents in
      var counts = Counts()
      counts.streams = contents.subscriptions.count
      counts.cutStreams = contents.cut.count
      counts.notifications = services.notifications
      var queries: Set<Query> = []
      for receiver in contents.receivers.values {
        counts.observations += receiver.observationCount
        queries.formUnion(receiver.queries)
        counts.cells += receiver.cellCount
      }
      counts.queries = queries.count
      return counts
    }
  }

  // MARK: Publishing

  /// Notifies the streams of what a batch of commits did; see `StorePublisher`.
  package func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    // Asked before the reports are looked at: a stream that missed something up to here has said so by now.
    let settled = StreamPosition(rawValue: services.hub.settledPosition).revision
    let firstMissed = lagReports.withLock { $0.values.min() }
    let position = StreamPosition.commit(revision).rawValue
    contents.withLock { if !$0.batchBytes.isEmpty { $0.batchBytes = [:] } }
    var events: [ObserverEvent] = []
    notify { event in
      events.append(event)
      guard events.count >= Self.eventsAtOnce, queryEvents.isEmpty else { return }
      services.hub.post(deliveries(of: events, []), position: nil)
      events.removeAll(keepingCapacity: true)
    }
    services.hub.post(deliveries(of: events, queryEvents), position: position)
    return min(settled, firstMissed?.lastNotified ?? settled)
  }

  /// How many events are encoded and given to the hub at once: its threads send these while the next are worked out.
  private static let eventsAtOnce = 256

  private func delivery(of event: ObserverEvent, _ contents: inout Contents) -> Delivery? {
    guard let receiver = contents.receivers[event.observer] else { return nil }
    guard event.hasOverflowed else { return receiver.delivery(of: StreamEvent(event), &contents) }
    return event.isTooLong ? receiver.missed(event) : receiver.overflow(&contents)
  }

  /// What a batch of commits delivers, live queries included, in the order of revisions: what one commit did to the
  /// cells of one stream is one delivery.
  private func deliveries(of events: [ObserverEvent], _ queryEvents: [QueryEvent]) -> [Delivery] {
    contents.withLock { contents in
      queryEvents.isEmpty
        ? events.compactMap { delivery(of: $0, &contents) } : deliveries(of: events, queryEvents, &contents)
    }
  }

  private func deliveries(
    of events: [ObserverEvent], _ queryEvents: [QueryEvent], _ contents: inout Contents
  ) -> [Delivery] {
    var deliveries: [(revision: Revision, delivery: Delivery)] = []
    func append(_ revision: Revision, _ delivery: Delivery?) {
      if let delivery { deliveries.append((revision, delivery)) }
    }
    var cellEvents: [ObserverID: [Revision: StreamEvent]] = [:]
    for event in queryEvents {
      // None of a query that failed: its filter has come to cost too much.
      let encoded: EncodedContent? =
        if case .content(let content) = event.outcome { services.encoder.encoded(content) } else { nil }
      for observer in event.observers {
        guard let receiver = contents.receivers[observer.id] else { continue }
        guard let encoded else {
          append(event.revision, receiver.overflow(&contents))
          continue
        }
        let notification = QueryNotification(
          cell: observer.cell, context: receiver.context(ofCell: observer.cell), body: .content(encoded))
        var streamEvent = StreamEvent(revision: event.revision, writer: encoded.content.writer)
        if observer.cell == nil {
          streamEvent.queries = [notification]
          append(event.revision, receiver.delivery(of: streamEvent, &contents))
        } else {
          cellEvents[observer.id, default: [:]][event.revision, default: streamEvent].queries.append(notification)
        }
      }
    }
    for event in events {
      if let queries = cellEvents[event.observer]?[event.revision]?.queries, !event.hasOverflowed {
        var merged = StreamEvent(event)
        merged.queries = queries
        cellEvents[event.observer]?[event.revision] = merged
      } else {
        cellEvents[event.observer]?[event.revision] = nil
        append(event.revision, delivery(of: event, &contents))
      }
    }
    for (id, events) in cellEvents {
      guard let receiver = contents.receivers[id] else { continue }
      for var event in events.values.sorted(by: { $0.revision < $1.revision }) {
        event.queries.sort { $0.cell ?? "" < $1.cell ?? "" }
        append(event.revision, receiver.delivery(of: event, &contents))
      }
    }
    // What of one stream is of one revision is one delivery by now, so that their order does not matter.
    return deliveries.sorted { $0.revision < $1.revision }.map(\.delivery)
  }

  // MARK: Slow readers

  /// A stream misses events, the first of them that of `position`. Any thread, without a lock.
  package func reportLag(_ id: StreamID, firstMissed position: UInt64) {
    lagReports.withLock { $0[id] = StreamPosition(rawValue: position) }
  }

  /// Has the subscription of a stream that was reported remember what the stream has.
  package func beginLag(_ id: StreamID, _ publication: borrowing Publication) {
    contents.withLock { contents in beginLag(id, contents, publication) }
  }

  private func beginLag(_ id: StreamID, _ contents: borrowing Contents, _ publication: borrowing Publication) {
    guard let firstMissed = takeReport(of: id) else { return }
    (contents.subscriptions[id] as? any CommitReceiver)?.beginLag(id, firstMissed: firstMissed, publication)
  }

  /// The position that a stream reported. From here on the history that the stream would need may be forgotten.
  private func takeReport(of id: StreamID) -> StreamPosition? { lagReports.withLock { $0.removeValue(forKey: id) } }

  /// Has the feed of the journal, which needs no publication for a slow reader, deal with a stream that was reported
  /// and, with `catchesUp`, send it what it missed. False where the stream does not follow the journal.
  func beginLag(ofFollower id: StreamID, catchesUp: Bool = false) -> Bool {
    contents.withLock { contents in
      guard let feed = contents.subscriptions[id] as? JournalFeed else { return false }
      if let firstMissed = takeReport(of: id) { feed.beginLag(id, firstMissed: firstMissed) }
      if catchesUp { feed.catchUp(id) }
      return true
    }
  }

  /// Sends a lagging stream, which has read everything else, what it missed. Gives what is to be done while others
  /// write, where that is much.
  package func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork? {
    contents.withLock { contents in
      // The report may have been overtaken by this.
      beginLag(id, contents, publication)
      return (contents.subscriptions[id] as? any CommitReceiver)?.catchUp(id, publication)
    }
  }

  // MARK: Listing and ending

  /// Every open stream, or those of one `sub`, without their details.
  package func describeStreams(of subject: String? = nil) -> JSONObject {
    let owner = subject.map { ExactText($0) }
    let streams = contents.withLock { contents in
      contents.subscriptions.filter { !$1.isOver && (owner == nil || self.owner(of: $0, $1) == owner) }
        .sorted {
          $0.key.number < $1.key.number
        }.map { id, subscription in
          var body = JSONObject()
          subscription.describe(in: &body)
          return (id: subscription.name(of: id), body: body)
        }
    }
    return ["streams": .array(streams.map { .object(named($0.id, $0.body)) })]
  }

  /// One stream, with its cells where it has any. Throws `unknown-stream`.
  package func describeStream(_ name: String) throws(Problem) -> JSONObject {
    let id = try id(of: name)
    let body = try contents.withLock { contents throws(Problem) in
      let subscription = try find(id, contents)
      var body = JSONObject()
      subscription.describe(in: &body)
      subscription.describeDetails(in: &body)
      return body
    }
    return named(id, body)
  }

  private func named(_ id: StreamID, _ body: JSONObject) -> JSONObject {
    var named: JSONObject = ["stream": .string(services.names.text(of: id))]
    for (key, value) in body.members { named[key] = value }
    return named
  }

  /// Ends streams with `bye`, reason `expired`.
  func expire(_ ids: [StreamID]) {
    let event = services.encoder.closingEvent(.expired)
    services.hub.post(ids.map { .endStream($0, event) }, position: nil)
  }

  /// Ends a stream with `bye`, reason `expired`. Throws `unknown-stream`.
  package func endStream(_ name: String) throws(Problem) {
    let id = try id(of: name)
    let connection = try contents.withLock { contents throws(Problem) -> StreamID? in
      if contents.cut.remove(id, at: services.now()) { return nil }
      let subscription = try find(id, contents)
      subscription.isOver = true
      return contents.connections[id] ?? id
    }
    guard let connection else { return }
    services.hub.post([.endStream(connection, services.encoder.closingEvent(.expired))], position: nil)
  }

  /// A stream is over, no matter which side ended it: so is what it observed. `cut` says how its connection ended,
  /// where its client may come back to it.
  func streamEnded(_ id: StreamID, _ cut: StreamCut?, _ publication: inout Publication) {
    lagReports.withLock { $0[id] = nil }
    owners.remove(id)
    contents.withLock { contents in
      contents.subscriptions.removeValue(forKey: id)?.end(id, cut, &contents, &publication)
    }
  }

  /// The stream that has a name, open or not: no lock is needed for it. Throws `unknown-stream` where none can have it.
  func id(of name: String) throws(Problem) -> StreamID {
    guard let id = services.names.id(of: name) else { throw Self.unknownStream }
    return id
  }

  /// The subscription of an open stream, by its name. Throws `unknown-stream`.
  func find(_ id: StreamID, _ contents: borrowing Contents) throws(Problem) -> any Subscription {
    guard let subscription = contents.subscriptions[contents.connections[id] ?? id], !subscription.isOver else {
      throw Self.unknownStream
    }
    return subscription
  }

  /// Whether a stream is open, or was cut and is kept for its client to come back.
  package func isThere(_ id: StreamID) -> Bool {
    contents.withLock { contents in
      if contents.cut.entry(id, at: services.now()) != nil { return true }
      return contents.subscriptions[contents.connections[id] ?? id].map { !$0.isOver } ?? false
    }
  }

  // MARK: Owners

  /// A connection is for someone: the stream, where it is a new one, belongs to their `sub`.
  func own(_ id: StreamID, _ owner: StreamOwner) {
    owners.add(id, owner)
    contents.withLock { contents in
      guard let stream = contents.subscriptions[id] as? CellStream, stream.opener == nil else { return }
      stream.opener = ExactText(owner.identity.subject)
    }
  }

  /// The `sub` that a stream belongs to, by the name of the stream; nil where that is nobody.
  func subject(of id: StreamID) -> ExactText? {
    contents.withLock { contents in
      if let stream = contents.cut.entry(id, at: services.now())?.stream { return stream.opener }
      let connection = contents.connections[id] ?? id
      return contents.subscriptions[connection].flatMap { owner(of: connection, $0) }
    }
  }

  private func owner(of connection: StreamID, _ subscription: any Subscription) -> ExactText? {
    (subscription as? CellStream)?.opener ?? owners.subject(of: connection)
  }

  /// Forgets the streams that no client came back to.
  func sweepCutStreams() { contents.withLock { $0.cut.removeExpired(at: services.now()) } }

  package static var unknownStream: Problem { Problem(.unknownStream, "no stream is open under this name") }
}
