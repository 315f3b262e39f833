import Dispatch
import HTTPServer
import KeyValueModel
import Store
import Support
import Synchronization

/// Sends the journal, transaction by transaction, to the streams that follow it.
///
/// One reader, woken by each batch of commits, reads what is new once, writes it once, and posts it to one channel of
/// the hub. A follower that is not with it, because it came with a cursor or reads slowly, receives the journal itself,
/// a piece at a time, the next one when the hub has sent the last. Once it has come to where the reader is, it goes on
/// with the others: both are decided under one lock, so that nothing is lost or doubled in between.
///
/// `state` is all that changes, under its lock, which is also held while something is posted, so that what is posted
/// comes in order; never while the journal is read. It is taken while the registry's lock is held, and perhaps the
/// publication's; never the other way round. The store's published state may be asked for within.
final class JournalFeed: Sendable {
  private struct State {
    var table = FollowerTable()
    var tail = FeedTail(byteLimit: JournalFeed.tailBytes)
  }

  /// What is read and posted at a time.
  private static let batchRecords = 256
  private static let batchBytes = 262_144
  /// What a follower that is behind is sent at a time, but for a transaction that is larger by itself.
  private static let pieceBytes = 65_536
  /// What is kept as it was sent, for followers that are a little behind.
  private static let tailBytes = 4 << 20
  /// The channel of all followers; a registry numbers its own from 1.
  private static let channel = ChannelID(0)

  private let journal: any TransactionJournal
  private let services: StreamServices
  private let state = Locked(State())
  /// Where the followers that are behind catch up, one after the other.
  private let catchUps = DispatchQueue(label: "keyway.journal.catch-ups", qos: .utility)

  private let reader = DispatchQueue(label: "keyway.journal.feed", qos: .userInitiated)
  private let published = Atomic<UInt64>(0)
  private let isFollowed = Atomic(false)
  private let isReaderWoken = Atomic(false)

  /// A feed that nobody follows yet.
  init(journal: any TransactionJournal, services: StreamServices) {
    self.journal = journal
    self.services = services
  }

  private var hub: StreamHub { services.hub }
  private var encoder: EventEncoder { services.encoder }

  // MARK: Following

  /// Opens a stream that goes on from a cursor, or from the present. `present` gives the published revision, and is
  /// asked once. Throws `too-many-streams` and `draining`.
  func open(
    _ cursor: String?, overflow: OverflowPolicy, for client: ClientAddress, present: () -> Revision
  ) throws(Problem) -> EventStream {
    try state.withLock { state throws(Problem) in
      // Before the present is asked for: what is published after that wakes the reader.
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
      // It has been woken for this, unless it could not read on then.
      if state.table.front < present { wakeReader() }
      return stream
    }
  }

  // MARK: The live end

  /// Everything up to a revision is published. Any thread; costs next to nothing.
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

  /// Posts the events that follow on a revision. Does nothing where the front is elsewhere: everybody has left, and
  /// others have come.
  private func deliver(_ events: [EventBytes], from front: Revision) throws(JournalError) {
    let ready = state.withLock { state -> [StreamID] in
      guard !state.table.isEmpty, state.table.front == front else { return [] }
      hub.post(events.map { .channel(Self.channel, $0) }, position: nil)
      for event in events { state.tail.append(event) }
      return state.table.advance(to: front + Revision(events.count))
    }
    for id in ready { catchUp(id) }
  }

  /// What is next cannot be read. Where it never will be, everybody hears so and goes on behind it; otherwise the
  /// streams end, and those that come back try again. True where there may be more to post.
  private func leap(over error: JournalError, from front: Revision, to target: Revision) -> Bool {
    let isForEver = error.isLasting
    let ready = state.withLock { state -> [StreamID] in
      guard !state.table.isEmpty, state.table.front == front else { return [] }
      guard isForEver else {
        hub.post([.endChannel(Self.channel, encoder.closingEvent(.shutdown))], position: nil)
        return []
      }
      state.tail.removeAll()
      // A stream that misses this has received everything up to the front, and will meet the same obstacle there.
      let event = encoder.reset(.compacted, at: target, position: StreamPosition.commit(front + 1).rawValue)
      hub.post([.channel(Self.channel, event)], position: nil)
      return state.table.advance(to: target)
    }
    for id in ready { catchUp(id) }
    return isForEver
  }

  // MARK: Followers who are behind

  // The hub asks for what each has missed, once it has sent what came before.

  /// Sends a stream that lags what it has missed, in its turn.
  func catchUp(_ id: StreamID) {
    catchUps.async { self.sendNextPiece(to: id) }
  }

  /// Tells a stream the next piece of what it has missed, or that there is nothing.
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

  /// Where a stream is and how far it can go on, with the events where they are still known as they were sent. Nil
  /// where there is nothing to send: then it goes on with the others, or waits for them.
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

  /// What a stream has missed cannot be read.
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

/// Streams that follow the journal share its feed, which knows how far each of them is.
extension JournalFeed: Subscription {
  func describe(in body: inout JSONObject) {
    body["kind"] = .string("journal")
    body["observations"] = .integer(0)
  }

  /// The reader of a stream is too slow, and misses what comes from `firstMissed` on.
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

  /// Opens a stream that goes on from a cursor, or from the present. Throws `too-many-streams` and `draining`.
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
  /// Whether what could not be read will never be read.
  fileprivate var isLasting: Bool {
    switch self {
    case .compacted, .damaged: true
    case .unexpectedRevision, .refused, .untrusted, .inUse, .unusable, .invalid: false
    }
  }
}

/// The events of streams that follow the journal.
extension EventEncoder {
  /// A `transaction` event.
  fileprivate func appendTransaction(_ record: JournalRecord, to text: inout EventBuffer) throws(JournalError) {
    var data: [UInt8] = []
    try record.appendFeedText(to: &data)
    append("transaction", id: record.revision, to: &text) { $0.append(data) }
  }

  /// The same, to be posted.
  fileprivate func event(of record: JournalRecord) throws(JournalError) -> EventBytes {
    // A transaction has its own bound, and cannot be told in parts.
    var text = text(limit: .max)
    try appendTransaction(record, to: &text)
    return text.event(at: .commit(record.revision)) ?? EventBytes([])
  }

  /// A `reset` and the cursor from which the stream goes on.
  fileprivate func reset(_ reason: Resumption.Reset, at revision: Revision, position: UInt64) -> EventBytes {
    posted(at: StreamPosition(rawValue: position)) { text in
      appendReset(reason, revision: revision, to: &text)
      appendHeartbeat(at: revision, to: &text)
    }
  }
}

extension JournalRecord {
  /// Appends the transaction as a JSON object; throws `damaged` where the record is none.
  func appendFeedText(to bytes: inout [UInt8]) throws(JournalError) {
    do throws(StoredTextError) {
      let transaction = try self.transaction()
      transaction.appendFeedText(revision: revision, milliseconds: milliseconds, to: &bytes)
    } catch {
      throw .damaged(place: "revision \(revision) of the journal", reason: "\(error)")
    }
  }
}
