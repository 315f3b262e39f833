import Dispatch
import HTTPServer
import KeyValueModel
import Store
import Support
import Synchronization

/// Sends the journal, transaction by transaction, to the streams that follow it.
///
/// One reader, woken by each batch of commits, reads new transactions once, encodes them once, and posts them to one
/// channel of the hub. A subscriber that is not with the others, because it came with a cursor or reads slowly,
/// receives the journal a piece at a time, the next one when the hub has sent the last. When it has reached the front,
/// it continues with the others: both are decided under one lock, so that nothing is lost or sent twice in between.
///
/// `state` holds the subscribers and the last events, under its lock. The lock is also held while something is posted,
/// so that events are posted in order; never while the journal is read. It is taken while the registry's lock is held,
/// and perhaps the publication's; never the other way round. The store's published state may be read within.
final class JournalFeed: Sendable {
  private struct State {
    var table = JournalSubscribers()
    var tail = FeedTail(byteLimit: JournalFeed.tailBytes)
  }

  /// The maximum number of records that are read and posted at a time; `batchBytes` is their maximum size in bytes.
  private static let batchRecords = 256
  private static let batchBytes = 262_144
  /// The maximum size in bytes of what is sent at a time to a subscriber that is behind, except for a single
  /// transaction that is larger.
  private static let pieceBytes = 65_536
  /// The maximum size in bytes of the events that are kept as they were sent, for subscribers that are a little behind.
  private static let tailBytes = 4 << 20
  /// The channel of all subscribers; a registry numbers its own from 1.
  private static let channel = ChannelID(0)

  private let journal: any TransactionJournal
  private let services: StreamServices
  private let state = Locked(State())
  /// The queue on which subscribers that are behind catch up, one after the other.
  private let catchUps = DispatchQueue(label: "keyway.journal.catch-ups", qos: .utility)

  private let reader = DispatchQueue(label: "keyway.journal.feed", qos: .userInitiated)
  private let published = Atomic<UInt64>(0)
  private let isFollowed = Atomic(false)
  private let isReaderWoken = Atomic(false)

  /// Creates a feed without subscribers.
  init(journal: any TransactionJournal, services: StreamServices) {
    self.journal = journal
    self.services = services
  }

  private var hub: StreamHub { services.hub }
  private var encoder: EventEncoder { services.encoder }

  // MARK: Following

  /// Opens a stream that continues from a cursor, or from the present. `present` returns the published revision, and is
  /// called once. Throws `too-many-streams` and `draining`.
  func open(
    _ cursor: String?, overflow: OverflowPolicy, for client: ClientAddress, present: () -> Revision
  ) throws(Problem) -> EventStream {
    try state.withLock { state throws(Problem) in
      // Set before `present` is called, because what is published after that wakes the reader.
      isFollowed.store(true, ordering: .sequentiallyConsistent)
      defer { isFollowed.store(!state.table.isEmpty, ordering: .sequentiallyConsistent) }
      let present = present()
      state.table.begin(at: present)
      let resumption = Resumption(
        cursor: cursor, epoch: encoder.epoch, oldest: journal.bounds.base, present: present)
      var prelude = services.prelude()
      var delivered = present
      switch resumption {
      case .fresh: encoder.appendHeartbeat(at: present, to: &prelude)
      case .after(let revision):
        delivered = revision
        prelude.append(EventEncoder.emptyBlock)
      case .reset(let reason):
        encoder.appendReset(reason, revision: present, to: &prelude)
        encoder.appendHeartbeat(at: present, to: &prelude)
      }
      let isBehind = delivered != state.table.front
      let stream = try services.open(
        for: client, prelude: prelude, channel: Self.channel, overflow: overflow,
        beginning: isBehind ? .behind : .position(StreamPosition.commit(delivered).rawValue))
      state.table.add(stream.id, deliveredUpTo: delivered)
      // The reader has been woken for this revision, unless it could not read on then.
      if state.table.front < present { wakeReader() }
      return stream
    }
  }

  // MARK: The live end

  /// Notes that everything up to a revision is published. May be called on any thread; costs next to nothing.
  func commitsWerePublished(upTo revision: Revision) {
    published.store(revision, ordering: .sequentiallyConsistent)
    if isFollowed.load(ordering: .sequentiallyConsistent) { wakeReader() }
  }

  private func wakeReader() {
    guard !isReaderWoken.exchange(true, ordering: .sequentiallyConsistent) else { return }
    reader.async { self.readOn() }
  }

  /// Posts what is published and has not been posted, until there is no more.
  private func readOn() {
    isReaderWoken.store(false, ordering: .sequentiallyConsistent)
    while true {
      let target = published.load(ordering: .sequentiallyConsistent)
      guard let front = state.withLock({ $0.table.isEmpty ? nil : $0.table.front }), front < target else { return }
      do throws(JournalError) {
        let records = try journal.records(
          after: front, through: target, limit: Self.batchRecords, bytes: Self.batchBytes)
        guard !records.isEmpty else { return }
        try deliver(try records.map { record throws(JournalError) in try encoder.event(of: record) }, from: front)
      } catch {
        guard leap(over: error, from: front, to: target) else { return }
      }
    }
  }

  /// Posts the events that follow a revision. Does nothing if the front is at another revision: all subscribers have
  /// left, and others have come.
  private func deliver(_ events: [EventBytes], from front: Revision) throws(JournalError) {
    let ready = state.withLock { state -> [StreamID] in
      guard !state.table.isEmpty, state.table.front == front else { return [] }
      hub.post(events.map { .channel(Self.channel, $0) }, position: nil)
      for event in events { state.tail.append(event) }
      return state.table.advance(to: front + Revision(events.count))
    }
    for id in ready { catchUp(id) }
  }

  /// Handles an error in reading the next transactions. If it is lasting, all subscribers are told so and continue
  /// after these transactions; otherwise the streams end, and those that come back try again. Returns true if there may
  /// be more to post.
  private func leap(over error: JournalError, from front: Revision, to target: Revision) -> Bool {
    let isForEver = error.isLasting
    let ready = state.withLock { state -> [StreamID] in
      guard !state.table.isEmpty, state.table.front == front else { return [] }
      guard isForEver else {
        hub.post([.endChannel(Self.channel, encoder.closingEvent(.shutdown))], position: nil)
        return []
      }
      state.tail.removeAll()
      // A stream that misses this event has received everything up to the front, and will meet the same error there.
      let event = encoder.reset(.compacted, at: target, position: StreamPosition.commit(front + 1).rawValue)
      hub.post([.channel(Self.channel, event)], position: nil)
      return state.table.advance(to: target)
    }
    for id in ready { catchUp(id) }
    return isForEver
  }

  // MARK: Subscribers that are behind

  // The hub asks for what each has missed, once it has sent what came before.

  /// Sends a lagging stream what it has missed, after the streams that asked before it.
  func catchUp(_ id: StreamID) {
    catchUps.async { self.sendNextPiece(to: id) }
  }

  /// Sends a stream the next piece of what it has missed, or tells it that there is nothing.
  private func sendNextPiece(to id: StreamID) {
    guard let (delivered, front, recent) = state.withLock({ nextPiece(for: id, &$0) }) else { return }
    do throws(JournalError) {
      var text = encoder.text(limit: .max)
      var last = delivered
      if let recent {
        for event in recent { text.write { event.appendText(to: &$0) } }
        last += Revision(recent.count)
      } else {
        let records = try journal.records(
          after: delivered, through: front, limit: Self.batchRecords, bytes: Self.pieceBytes)
        for record in records {
          try encoder.appendTransaction(record, to: &text)
          last = record.revision
        }
      }
      post(text.event(at: .commit(last)) ?? EventBytes([]), to: id, from: delivered, upTo: last)
    } catch {
      giveUp(error, on: id, at: delivered)
    }
  }

  /// Returns the revision that a stream has reached and the one that it can continue to, with the events if they are
  /// still kept as they were sent. Returns nil if there is nothing to send: then the stream continues with the others,
  /// or waits for them.
  private func nextPiece(
    for id: StreamID, _ state: inout State
  ) -> (delivered: Revision, front: Revision, recent: [EventBytes]?)? {
    guard let delivered = state.table.revisionToGoOnFrom(id) else { return nil }
    let front = state.table.front
    guard delivered < front else {
      post(EventBytes([], position: StreamPosition.commit(delivered).rawValue), to: id, upTo: delivered, &state)
      return nil
    }
    return (delivered, front, state.tail.events(after: delivered, bytes: Self.pieceBytes))
  }

  private func post(_ piece: EventBytes, to id: StreamID, from delivered: Revision, upTo last: Revision) {
    state.withLock { state in
      guard state.table.revisionToGoOnFrom(id) == delivered else { return }
      post(piece, to: id, upTo: last, &state)
    }
  }

  private func post(_ piece: EventBytes, to id: StreamID, upTo last: Revision, _ state: inout State) {
    let isWithOthers = state.table.move(id, to: last)
    hub.post([.catchUp(id, piece, isLast: isWithOthers)], position: nil)
  }

  /// Handles an error in reading what a stream has missed.
  private func giveUp(_ error: JournalError, on id: StreamID, at delivered: Revision) {
    state.withLock { state in
      guard state.table.revisionToGoOnFrom(id) == delivered else { return }
      guard error.isLasting else { return hub.post([.endStream(id, encoder.closingEvent(.shutdown))], position: nil) }
      let front = state.table.front
      let reset = encoder.reset(.compacted, at: front, position: StreamPosition.commit(front).rawValue)
      post(reset, to: id, upTo: front, &state)
    }
  }
}

/// Streams that follow the journal share its feed, which knows how far each of them has been notified.
extension JournalFeed: Subscription {
  func describe(in body: inout JSONObject) {
    body["kind"] = .string("journal")
    body["observations"] = .integer(0)
  }

  /// Notes that the reader of a stream is too slow, so that it misses everything from `firstMissed` on.
  func beginLag(_ id: StreamID, firstMissed: StreamPosition) {
    state.withLock { $0.table.beginLag(id, lastNotified: firstMissed.lastNotified) }
  }

  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {
    state.withLock { state in
      state.table.remove(id)
      guard state.table.isEmpty else { return }
      state.tail.removeAll()
      isFollowed.store(false, ordering: .sequentiallyConsistent)
    }
  }
}

/// Opens streams that follow the journal.
struct JournalStreams: Sendable {
  let registry: StreamRegistry
  let feed: JournalFeed

  /// Opens a stream that continues from a cursor, or from the present. Throws `too-many-streams` and `draining`.
  func open(
    _ cursor: String?, overflow: OverflowPolicy, for client: ClientAddress, in store: Store
  ) throws(Problem) -> EventStream {
    try registry.contents.withLock { contents throws(Problem) in
      let stream = try feed.open(cursor, overflow: overflow, for: client) { store.snapshot.revision }
      contents.subscriptions[stream.id] = feed
      return stream
    }
  }
}

extension JournalError {
  /// True if what could not be read will never be readable.
  fileprivate var isLasting: Bool {
    switch self {
    case .compacted, .damaged: true
    case .unexpectedRevision, .refused, .untrusted, .inUse, .unusable, .invalid: false
    }
  }
}

/// The events of streams that follow the journal.
extension EventEncoder {
  /// Appends a `transaction` event.
  fileprivate func appendTransaction(_ record: JournalRecord, to text: inout EventBuffer) throws(JournalError) {
    var data: [UInt8] = []
    try record.appendFeedText(to: &data)
    append("transaction", id: record.revision, to: &text) { $0.append(data) }
  }

  /// Returns a `transaction` event, to be posted.
  fileprivate func event(of record: JournalRecord) throws(JournalError) -> EventBytes {
    // A transaction has its own limit, and cannot be sent in parts.
    var text = text(limit: .max)
    try appendTransaction(record, to: &text)
    return text.event(at: .commit(record.revision)) ?? EventBytes([])
  }

  /// Returns a `reset` event, and the cursor from which the stream continues.
  fileprivate func reset(_ reason: Resumption.Reset, at revision: Revision, position: UInt64) -> EventBytes {
    posted(at: StreamPosition(rawValue: position)) { text in
      appendReset(reason, revision: revision, to: &text)
      appendHeartbeat(at: revision, to: &text)
    }
  }
}

extension JournalRecord {
  /// Appends the transaction as a JSON object. Throws `damaged` if the record is not a transaction.
  func appendFeedText(to bytes: inout [UInt8]) throws(JournalError) {
    do throws(StoredTextError) {
      let transaction = try self.transaction()
      transaction.appendFeedText(revision: revision, milliseconds: milliseconds, to: &bytes)
    } catch {
      throw .damaged(place: "revision \(revision) of the journal", reason: "\(error)")
    }
  }
}
