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
  struct State {
    var table = FollowerTable()
    var tail = FeedTail(byteLimit: JournalFeed.tailBytes)
  }

  /// What is read and posted at a time.
  static let batchRecords = 256
  static let batchBytes = 262_144
  /// What a follower that is behind is sent at a time, but for a transaction that is larger by itself.
  static let pieceBytes = 65_536
  /// What is kept as it was sent, for followers that are a little behind.
  private static let tailBytes = 4 << 20
  /// The channel of all followers; a registry numbers its own from 1.
  static let channel = ChannelID(0)

  let journal: any TransactionJournal
  let services: StreamServices
  let state = Locked(State())
  /// Where the followers that are behind catch up, one after the other.
  let catchUps = DispatchQueue(label: "keyway.journal.catch-ups", qos: .utility)

  private let reader = DispatchQueue(label: "keyway.journal.feed", qos: .userInitiated)
  private let published = Atomic<UInt64>(0)
  private let isFollowed = Atomic(false)
  private let isReaderWoken = Atomic(false)

  /// A feed that nobody follows yet.
  init(journal: any TransactionJournal, services: StreamServices) {
    self.journal = journal
    self.services = services
  }

  var hub: StreamHub { services.hub }
  var encoder: EventEncoder { services.encoder }

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

  /// A stream is over.
  func remove(_ id: StreamID) {
    state.withLock { state in
      state.table.remove(id)
      guard state.table.isEmpty else { return }
      state.tail.removeAll()
      isFollowed.store(false, ordering: .sequentiallyConsistent)
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
}

extension JournalError {
  /// Whether what could not be read will never be read.
  var isLasting: Bool {
    switch self {
    case .compacted, .damaged: true
    case .unexpectedRevision, .refused, .untrusted, .inUse, .unusable, .invalid: false
    }
  }
}
