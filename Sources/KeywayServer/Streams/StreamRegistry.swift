import CEL
package import HTTPServer
package import KeyValueModel
package import KeyValueObserving
package import Store
import Support

/// Every open stream with its subscription. It carries events from the store to the hub. It does not know the kinds of
/// streams, only that the effects of one commit on the cells and live queries of one stream are one delivery.
///
/// `contents` is guarded by its lock, which is taken while the publication's lock is held or with no other lock.
/// Opening a stream takes the publication that its caller has locked, so that the first events of the stream and the
/// following ones are consistent. A subscription's own lock is taken inside. `lagReports` is locked last, with no other
/// lock inside.
package final class StreamRegistry: StorePublisher, Sendable {
  struct Contents {
    var subscriptions: [StreamID: any Subscription] = [:]
    var receivers: [ObserverID: any CommitReceiver] = [:]
    /// The topics, which streams with the same request share.
    var topics: [AnyHashable: any Topic] = [:]
    /// The streams with cells whose connections were cut.
    var cut = CutStreams()
    /// The connections of resumed streams, by the names that the streams have had from the beginning.
    var connections: [StreamID: StreamID] = [:]
    /// The number of bytes of events of the present batch of commits, for the cells of each client.
    var batchBytes: [ClientAddress: Int] = [:]
    private var lastObserver: UInt64 = 0

    mutating func makeObserver() -> ObserverID {
      lastObserver += 1
      return ObserverID(lastObserver)
    }
  }

  /// The numbers of streams, cells and observations.
  package struct Counts: Hashable, Sendable {
    /// The open streams of every kind.
    package var streams = 0
    /// The streams without a connection, which their clients may resume. No other count includes them.
    package var cutStreams = 0
    /// The cells, with or without a binding.
    package var cells = 0
    /// The distinct live queries that are watched.
    package var queries = 0
    /// The observations, each registration counted.
    package var observations = 0
    /// The changes that subscribers were notified of, counted once for each stream.
    package var notifications: UInt64 = 0
  }

  package let services: StreamServices
  /// The owners of the streams.
  let owners = StreamOwners()
  let contents = Locked(Contents())
  /// The streams that reported missing events, with the position of the first one, until that is handled.
  private let lagReports = Locked<[StreamID: StreamPosition]>([:])

  /// Creates a registry without streams. `random` returns unguessable numbers, from which the names of streams and the
  /// jitter of `retry:` are made.
  package convenience init(
    hub: StreamHub, ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max), epoch: String,
    limits: StreamLimits, random: @escaping @Sendable () -> UInt64
  ) {
    self.init(StreamServices(hub: hub, ledger: ledger, epoch: epoch, limits: limits, random: random))
  }

  init(_ services: StreamServices) {
    self.services = services
  }

  /// The present counts.
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

  /// Notifies the streams of the effects of a batch of commits. See `StorePublisher`.
  package func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision {
    // Read before the reports: a stream that missed something up to this position has reported it by now.
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

  /// The number of events that are encoded and posted to the hub at once. Its threads send these while the next ones
  /// are evaluated.
  private static let eventsAtOnce = 256

  private func delivery(of event: ObserverEvent, _ contents: inout Contents) -> Delivery? {
    guard let receiver = contents.receivers[event.observer] else { return nil }
    guard event.hasOverflowed else { return receiver.delivery(of: StreamEvent(event), &contents) }
    return event.isTooLong ? receiver.missed(event) : receiver.overflow(&contents)
  }

  /// Returns the deliveries of a batch of commits, including live queries, in the order of revisions. The effects of
  /// one commit on the cells of one stream are one delivery.
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
      // Nil for a query that failed because its filter now costs too much.
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
    // Everything of one revision for one stream is one delivery by now, so that the order within a revision does not
    // matter.
    return deliveries.sorted { $0.revision < $1.revision }.map(\.delivery)
  }

  // MARK: Slow readers

  /// Reports that a stream misses events, the first one at `position`. Can be called from any thread, without a lock.
  package func reportLag(_ id: StreamID, firstMissed position: UInt64) {
    lagReports.withLock { $0[id] = StreamPosition(rawValue: position) }
  }

  /// Makes the subscription of a reported stream remember the state that the stream has.
  package func beginLag(_ id: StreamID, _ publication: borrowing Publication) {
    contents.withLock { contents in beginLag(id, contents, publication) }
  }

  private func beginLag(_ id: StreamID, _ contents: borrowing Contents, _ publication: borrowing Publication) {
    guard let firstMissed = takeReport(of: id) else { return }
    (contents.subscriptions[id] as? any CommitReceiver)?.beginLag(id, firstMissed: firstMissed, publication)
  }

  /// Returns the position that a stream reported, and removes the report. The history that the stream needs may be
  /// discarded from then on.
  private func takeReport(of id: StreamID) -> StreamPosition? { lagReports.withLock { $0.removeValue(forKey: id) } }

  /// Lets the feed of the journal, which needs no publication for a slow reader, handle a reported stream and, with
  /// `catchesUp`, send it what it missed. Returns false if the stream does not follow the journal.
  func beginLag(ofFollower id: StreamID, catchesUp: Bool = false) -> Bool {
    contents.withLock { contents in
      guard let feed = contents.subscriptions[id] as? JournalFeed else { return false }
      if let firstMissed = takeReport(of: id) { feed.beginLag(id, firstMissed: firstMissed) }
      if catchesUp { feed.catchUp(id) }
      return true
    }
  }

  /// Sends a lagging stream, which has read everything else, what it missed. Returns the work that remains to be done
  /// without the lock if that is a lot.
  package func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork? {
    contents.withLock { contents in
      // This may have overtaken the report.
      beginLag(id, contents, publication)
      return (contents.subscriptions[id] as? any CommitReceiver)?.catchUp(id, publication)
    }
  }

  // MARK: Listing and ending

  /// Describes every open stream, or those of one `sub`, without their details.
  package func describeStreams(of subject: String? = nil) -> JSONObject {
    let owner = subject.map { ExactText($0) }
    let streams = contents.withLock { contents in
      contents.subscriptions.filter { !$1.hasEnded && (owner == nil || self.owner(of: $0, $1) == owner) }
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

  /// Describes one stream, with its cells if it has any. Throws `unknown-stream`.
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
      subscription.hasEnded = true
      return contents.connections[id] ?? id
    }
    guard let connection else { return }
    services.hub.post([.endStream(connection, services.encoder.closingEvent(.expired))], position: nil)
  }

  /// Handles the end of a stream, whichever side ended it: ends what it observed. `cut` tells how its connection ended,
  /// if its client may resume the stream.
  func streamEnded(_ id: StreamID, _ cut: StreamCut?, _ publication: inout Publication) {
    lagReports.withLock { $0[id] = nil }
    owners.remove(id)
    contents.withLock { contents in
      contents.subscriptions.removeValue(forKey: id)?.end(id, cut, &contents, &publication)
    }
  }

  /// Returns the stream with a name, open or not, without a lock. Throws `unknown-stream` if no stream can have the
  /// name.
  func id(of name: String) throws(Problem) -> StreamID {
    guard let id = services.names.id(of: name) else { throw Self.unknownStream }
    return id
  }

  /// Returns the subscription of an open stream, by the stream's name. Throws `unknown-stream`.
  func find(_ id: StreamID, _ contents: borrowing Contents) throws(Problem) -> any Subscription {
    guard let subscription = contents.subscriptions[contents.connections[id] ?? id], !subscription.hasEnded else {
      throw Self.unknownStream
    }
    return subscription
  }

  /// Returns true if a stream is open, or was cut and can still be resumed.
  package func exists(_ id: StreamID) -> Bool {
    contents.withLock { contents in
      if contents.cut.entry(id, at: services.now()) != nil { return true }
      return contents.subscriptions[contents.connections[id] ?? id].map { !$0.hasEnded } ?? false
    }
  }

  // MARK: Owners

  /// Sets the owner of a connection. A new stream with cells then belongs to the owner's `sub`.
  func own(_ id: StreamID, _ owner: StreamOwner) {
    owners.add(id, owner)
    contents.withLock { contents in
      guard let stream = contents.subscriptions[id] as? CellStream, stream.opener == nil else { return }
      stream.opener = ExactText(owner.identity.subject)
    }
  }

  /// Returns the `sub` that owns a stream, by the name of the stream. Nil if it has no owner.
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

  /// Forgets the cut streams that were not resumed in time.
  func sweepCutStreams() { contents.withLock { $0.cut.removeExpired(at: services.now()) } }

  package static var unknownStream: Problem { Problem(.unknownStream, "no stream is open under this name") }
}
