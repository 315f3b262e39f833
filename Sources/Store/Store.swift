import Dispatch
import Glibc
package import KeyValueModel
import KeyValueObserving
package import Support
import Synchronization

/// The single writer, and what it has published.
///
/// Mutable state and who guards it: `queue` holds writes that wait, under its lock; `writing` belongs to whichever
/// block runs on the serial `writer` queue, and its lock is never waited for; `publication` holds what is published
/// together with its observers, under its lock; `latest` is the published state once more, for readers, which must not
/// wait until all observers have been notified; `currentCondition` says whether it can be written. Locks are taken in
/// this order: writing, publication, latest. `queue` and `currentCondition` are never held with another.
package final class Store: Sendable {
  /// What the writer has.
  struct Writing {
    var model: Model
    /// When the journal may be asked to read itself back again.
    var nextRecovery = ContinuousClock.now
    /// The bytes of the batch that the journal refused last.
    var refusedBytes = 0
    /// What the last batch was like, to tell how many may come for the next.
    var patience = WriterPatience()
    /// By how much clients have made the objects grow.
    var growth: ClientGrowth
  }

  /// Whether the store can be read and written.
  package enum Condition: Hashable, Sendable {
    /// It has not read its journal yet.
    case recovering(RecoveryProgress)
    /// All is well.
    case serving
    /// It can be read; what was written last was refused, for this reason.
    case unavailable(String)
  }

  /// What the objects are.
  package let schema: Schema
  /// Where every commit is written down.
  package let journal: any TransactionJournal
  /// The random word that tells this store's cursors from those of any other. A journal keeps its epoch while it is
  /// open.
  package let epoch: String
  /// The journal, where other nodes append to it too.
  let shared: (any SharedJournal)?
  /// How often a batch was judged anew because another node was first.
  private let overtaken = Atomic(0)
  /// Told what other nodes have kept with their commits; nothing before `recover`.
  let restoring = Locked<KeptAction<[StoredAttachment], Void>?>(nil)
  /// Asked what is still of use of what was kept with commits up to a revision; nothing before `keepAttachments`.
  private let keeping = Locked<KeptAction<Revision, [StoredAttachment]>?>(nil)

  package let limits: StoreLimits
  /// The writes that were refused because they would have had the objects take more memory than they may.
  package let growthRefusals: GrowthRefusals
  /// How long transactions took from being handed over to being published.
  package let commitDurations = DurationHistogram()
  /// How long the journal took to write a batch of them down.
  package let syncDurations = DurationHistogram()
  /// The clock that commits are dated by.
  let clock: CommitClock
  private let queue: Locked<WriteQueue<QueuedWrite>>
  let writer = DispatchQueue(label: "keyway.writer", qos: .userInitiated)
  /// Frees what would hold up the writer.
  private let freeing = DispatchQueue(label: "keyway.freeing", qos: .utility)
  let writing: Locked<Writing>
  private let publication: Locked<Publication>
  private let latest: LatestSnapshot
  let currentCondition: Locked<Condition>
  /// Tells the operator.
  let notify: @Sendable (StoreNotice) -> Void
  let keeper: JournalKeeper
  /// The same for what is kept of a journal that is shared.
  let cacheKeeper = Locked<JournalKeeper?>(nil)
  let leases: LeaseKeeper
  private let publisher: any StorePublisher
  /// What was worked out for resuming clients. Taken with no other lock but the publication's.
  private let missedCommits: Locked<BoundedCache<Revision, MissedCommits>>
  private let resumedQueries: Locked<BoundedCache<ResumedQueryKey, PreparedQuery>>

  /// A store without objects over a journal, which `recover` reads. `streams` says which streams are this node's; all
  /// without it. `publisher` is told of each batch of commits; `now` gives milliseconds since 1970, and `elapsed` those
  /// of a clock that only grows, by which leases run; `notify` is told what an operator should know, once when that
  /// begins and once when it ends, from any thread, and must not call the store.
  package init(
    schema: Schema, journal: any TransactionJournal, limits: StoreLimits, publisher: any StorePublisher,
    streams: StreamNumbers? = nil,
    now: @escaping @Sendable () -> Int64, elapsed: @escaping @Sendable () -> UInt64 = ElapsedTime.milliseconds,
    notify: @escaping @Sendable (StoreNotice) -> Void = { _ in }
  ) {
    self.schema = schema
    self.journal = journal
    epoch = journal.identity.epoch
    shared = journal as? any SharedJournal
    self.limits = limits
    self.publisher = publisher
    clock = CommitClock(wall: now, elapsed: elapsed)
    self.notify = notify
    growthRefusals = GrowthRefusals { notify(.refusesGrowth) }
    let model = Model(schema: schema)
    let history = History(limits: limits)
    let snapshot = Snapshot(state: model.state, revision: model.revision, after: history)
    queue = Locked(WriteQueue(limits))
    let growth = ClientGrowth(limit: limits.growthPerClient, refusals: growthRefusals)
    writing = Locked(Writing(model: model, growth: growth))
    publication = Locked(Publication(snapshot: snapshot, history: history, limits: limits))
    latest = LatestSnapshot(snapshot)
    currentCondition = Locked(journal.bounds.last == 0 ? .serving : .recovering(RecoveryProgress()))
    keeper = JournalKeeper(journal: journal, limits: limits) { failure in
      notify(failure.map { .snapshotFailed($0) } ?? .snapshotWritten)
    }
    shared?.cache?.whenChanged { [notify] in notify($0.map { .cacheFailed($0) } ?? .cacheWritten) }
    leases = LeaseKeeper(streams: streams, elapsed: elapsed)
    missedCommits = Locked(BoundedCache(weightLimit: limits.resumedRevisions))
    resumedQueries = Locked(BoundedCache(weightLimit: limits.resumedRows))
  }

  /// An empty store in memory.
  package convenience init(schema: Schema, epoch: String, limits: StoreLimits, publisher: any StorePublisher) {
    self.init(
      schema: schema, journal: MemoryJournal(identity: JournalIdentity(epoch: epoch, schema: "")), limits: limits,
      publisher: publisher, now: { Int64(time(nil)) * 1000 })
  }

  /// From now on snapshots have what `kept` says is still of use of what was kept with commits up to a revision, oldest
  /// first: it is gone with the records otherwise. Called on a thread that may wait; must not call the store.
  package func keepAttachments(_ kept: @escaping @Sendable (Revision) -> [StoredAttachment]) {
    keeping.withLock { $0 = KeptAction(kept) }
  }

  /// What is still of use of what was kept with commits up to a revision, oldest first. On a thread that may wait.
  package func attachments(upTo revision: Revision) -> [StoredAttachment] { keeping.withLock { $0 }?(revision) ?? [] }

  /// The published state. Never waits for a write or for observers being told.
  package var snapshot: Snapshot { latest.snapshot }

  /// How far it has come.
  package var revision: Revision { latest.revision }

  /// Whether it can be read and written.
  package var condition: Condition { currentCondition.withLock { $0 } }

  /// How many writes wait.
  package var queuedWrites: Int { queue.withLock { $0.count } }

  /// Runs `body` while nothing can be published: what it reads and what it registers belong to one revision. Keep it
  /// short; the writer waits. Must not be nested.
  package func withPublication<Result, Failure: Error>(
    _ body: (inout Publication) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    try publication.withLock { publication throws(Failure) in
      defer { free(publication.queries.takeForgotten()) }
      return try body(&publication)
    }
  }

  /// Who asks for what the store does by itself.
  package static var ownClient: Int { 0 }

  /// Hands a write to the writer. False if too many wait already, of all clients or of this one: then none of its
  /// methods is called.
  package func submit(_ write: any StoreWrite) -> Bool {
    let queued = QueuedWrite(write: write)
    enum Entry { case refused, queued, first }
    let entry = queue.withLock { queue -> Entry in
      guard queue.enqueue(queued, bytes: write.byteCount, of: write.client) else { return .refused }
      if queue.isScheduled { return .queued }
      queue.isScheduled = true
      return .first
    }
    if entry == .first { writer.async { self.writeAll() } }
    return entry != .refused
  }

  /// Hands a transaction to the writer. False if too many wait already; then neither closure is called. `attachment`
  /// gives on the writer what is kept with the commit. `finish` is called once, when the commit is durable and
  /// published, or has come to nothing: with the outcome, the revision of the state that the transaction left, and the
  /// failure of the journal, if there was one.
  package func submit(
    _ transaction: Transaction, of client: Int = ownClient, bytes: Int = 0, limits: TransactionLimits? = nil,
    attachment: (@Sendable (Commit) -> [UInt8])? = nil,
    finish: @escaping @Sendable (Result<Commit, ModelError>, Revision, StoreUnavailable?) -> Void
  ) -> Bool {
    submit(
      PlainWrite(transaction, of: client, bytes: bytes, limits: limits, attachment: attachment, finish: finish))
  }

  /// Shows durable commits to readers and observers. `times` says when each of them was made. Returns how many steps
  /// each took that observers and live queries were notified of.
  @discardableResult
  private func publish(_ commits: [Commit], at times: [Int64], _ state: ModelState, _ revision: Revision) -> [Int] {
    let (dropped, steps) = publication.withLock { publication in
      var dropped: [any Sendable] = []
      for (commit, milliseconds) in zip(commits, times) {
        dropped += publication.history.append(commit, milliseconds: milliseconds)
      }
      latest.show(publication.advance(to: state, revision))
      forgetResumed(at: revision)
      var queryEvents: [QueryEvent] = []
      var steps = publication.queries.notify(commits, of: state) { queryEvents.append($0) }
      let settled = publisher.publish(queryEvents, upTo: revision) { receive in
        let budget = publication.observers.notify(
          commits, of: state, changesPerObserver: limits.changesPerObserver,
          bytesPerObserver: limits.bytesPerObserver,
          budget: ObservationBudget.publishing(steps: limits.observationCommitSteps), receive: receive)
        for (place, count) in budget.stepsOfCommits.enumerated() { steps[place] += count }
      }
      publication.queries.settle(upTo: settled)
      free(publication.queries.takeForgotten())
      return (dropped, steps)
    }
    // Hundreds of transactions of a thousand objects each may leave the history within a moment.
    free(dropped.isEmpty ? nil : dropped)
    return steps
  }

  /// Lets go of something large where nobody waits for it.
  private func free(_ garbage: (any Sendable)?) {
    if let garbage { freeing.async { withExtendedLifetime(garbage) {} } }
  }

  /// Publishes what was recovered. There is no observer yet.
  func adopt(_ model: Model, _ history: History) {
    writing.withLock { $0.model = model }
    if let time = history.lastTime { clock.advance(to: time) }
    // A little earlier than their clients may come back at the latest: what is late is deleted within a second, and
    // where another node is to do that, this one leaves it time to.
    let early = shared == nil ? 0 : Self.lateMilliseconds
    leases.restore(model.state, wall: clock.now(), grace: streamGrace - min(streamGrace, early))
    publication.withLock { publication in
      let snapshot = Snapshot(state: model.state, revision: model.revision, after: history)
      publication = Publication(snapshot: snapshot, history: history, limits: limits)
      latest.show(snapshot)
      // Before the first subscription: heartbeats name this state, although nothing was committed yet.
      publication.queries.settle(upTo: publisher.publish([], upTo: snapshot.revision) { _ in })
    }
    currentCondition.withLock { $0 = .serving }
  }

  /// Drops from the history what has become too old.
  func trimHistory() {
    // So that all nodes agree on what can be resumed, the times of the records alone decide where there are several.
    guard shared == nil else { return }
    publication.withLock { publication in
      guard publication.history.trim(at: clock.now()) else { return }
      latest.show(publication.advance(to: publication.snapshot.state, publication.snapshot.revision))
    }
  }
}

// MARK: - Recovery

extension Store {
  /// Reads the journal, once, before the first write; then the store serves. Gives remarks for the operator. Throws
  /// what stands in the way; then the store is of no use.
  ///
  /// `schemaText` is the text of the store's schema. Where the journal was written under one that says something else,
  /// its objects are taken to this one, in a revision of its own; what cannot go on is told by `StoreError.schema`, and
  /// nothing has changed. Without a text, the journal's is taken to be this one. `restore` gets what was kept with the
  /// commits that are carried out again, which are those that can be resumed and more, oldest first, some at a time,
  /// before the first write; where the journal is shared, also what other nodes keep with theirs from then on, before
  /// these are published. It must not call the store.
  package func recover(
    schemaText: String? = nil, report: @escaping (RecoveryProgress) -> Void = { _ in },
    restore: @escaping @Sendable ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) -> [String] {
    // Writes are taken as soon as it serves, and may be overtaken before this node follows.
    if shared != nil { restoring.withLock { $0 = KeptAction(restore) } }
    return try StoreOpening(self, report: report, restore: restore).run(schemaText: schemaText)
  }

  /// What was kept with commits was told to `restore`, or is, of all commits after this revision.
  package var toldAfter: Revision { keeper.toldAfter }

  /// The revision of the newest snapshot; 0 where there is none.
  package var snapshotRevision: Revision { keeper.snapshotRevision }

  /// From now on the journal forgets no more than `need` says.
  package func keepRecords(_ need: @escaping JournalNeed) { keeper.keep(need) }

  /// Why the last snapshot could not be written; nil where all is well.
  package var snapshotFailure: String? { keeper.failure }

  /// Ends the use of the journal, once the last write has been answered.
  package func close() {
    writer.sync { journal.close() }
  }
}

// MARK: - Writing

/// The single writer: it takes what waits by batches, applies each, writes down what it did with one sync,
/// and publishes it.
extension Store {
  /// Takes what waits by batches, until nothing does.
  private func writeAll() {
    while true {
      writing.withLock { $0.patience }.wait { isSo in queue.withLock { isSo($0) } }
      let batch = queue.withLock { queue in
        let batch = queue.takeBatch()
        if batch.isEmpty { queue.isScheduled = false }
        return batch
      }
      if batch.isEmpty { return }
      var rest = batch[...]
      var times = WriterTimes()
      while !rest.isEmpty { write(&rest, &times) }
      queue.withLock { $0.charge(times.microseconds) }
      journal.maintain()
    }
  }

  /// Commits as much of `rest` as goes into one batch, and takes it off.
  private func write(_ rest: inout ArraySlice<QueuedWrite>, _ times: inout WriterTimes) {
    var waiting = rest
    var (overtaking, attempt) = (Overtaking(), self.attempt(&rest, limit: .max, &times))
    while attempt.isOvertaken {
      overtaken.wrappingAdd(1, ordering: .relaxed)
      let goesOn = overtaking.goesOn()
      if !isCaretaker { overtaking.giveBack(&waiting) }
      rest = waiting
      guard goesOn else {
        let first = rest.popFirst().map { [$0] } ?? []
        attempt = WriteAttempt(refusing: first, of: self, because: "other nodes write faster than this one can")
        break
      }
      attempt = self.attempt(&rest, limit: max(1, waiting.count >> min(overtaking.count, 20)), &times)
    }
    attempt.finish()
    guard attempt.failure != nil, let shared, shared.silence >= WriteTime.silence else { return }
    // What waits has waited for as long as the attempt took, and may not do so again.
    let late = rest + queue.withLock { $0.takeAll() }
    rest = []
    WriteAttempt(refusing: late, of: self, because: "the journal is out of reach; nothing was changed").finish()
  }

  /// Applies writes, writes down what they did, and publishes it.
  private func attempt(
    _ rest: inout ArraySlice<QueuedWrite>, limit: Int, _ times: inout WriterTimes
  ) -> WriteAttempt {
    var attempt = WriteAttempt(of: self)
    writing.withLock { writing in
      var admission = leases.admission(limits)
      let base = writing.model.revision
      let (clients, processor) = (rest.map { $0.write.client }, ProcessorStopwatch())
      let durations = attempt.take(from: &rest, limit: limit, &writing, &admission)
      times.add(processor.nanoseconds, to: clients, by: durations)
      writing.patience.lastBatchCount = attempt.commits.count
      do throws(JournalError) {
        guard !attempt.commits.isEmpty else {
          // A refusal is not given by a state that another node has left behind.
          if attempt.hasRefused { try shared?.confirm(base) }
          return
        }
        let watch = Stopwatch()
        try append(attempt.records, after: base, &writing)
        let nanoseconds = watch.nanoseconds
        syncDurations.record(nanoseconds: nanoseconds)
        writing.patience.lastSync = .nanoseconds(nanoseconds)
      } catch {
        // No reader has seen any of it: what is published is what was there before.
        undo(&writing)
        if isOvertaken(error, &writing) { return attempt.isOvertaken = true }
        writing.refusedBytes = attempt.bytes
        becomeUnavailable(error)
        attempt.failure = StoreUnavailable(reason: journal.publicReason(error))
        return
      }
      becomeAvailable()
      writing.growth.keep()
      leases.note(attempt.commits, of: admission.clients)
      let publishing = ProcessorStopwatch()
      let steps = publish(
        attempt.commits, at: attempt.records.map(\.milliseconds), writing.model.state, writing.model.revision)
      times.add(publishing.nanoseconds, to: attempt.applied.map { $0.write.client }, by: steps)
      for queued in attempt.applied { commitDurations.record(nanoseconds: queued.watch.nanoseconds) }
      noteWritten(records: attempt.records.count, bytes: attempt.bytes)
    }
    return attempt
  }

  /// Between two attempts to read a journal back that may have lost something.
  private static let recoveryInterval = Duration.seconds(1)

  /// Writes records down. Where the journal cannot be trusted, has it read itself back first.
  private func append(
    _ records: [JournalRecord], after base: Revision, _ writing: inout Writing
  ) throws(JournalError) {
    do throws(JournalError) {
      try journal.append(records, after: base)
    } catch {
      // One that is shared has tried again itself as long as a write may take.
      guard case .untrusted = error, shared == nil, .now >= writing.nextRecovery else { throw error }
      writing.nextRecovery = .now + Self.recoveryInterval
      try journal.recover()
      do throws(JournalError) {
        try journal.append(records, after: base)
      } catch {
        // What may have reached the disk is refused to those who asked for it, so it must not be found at the next
        // start.
        if case .untrusted = error { try? journal.recover() }
        throw error
      }
      // The next failure is another one, and is undone at once.
      writing.nextRecovery = .now
    }
  }
}

// MARK: - Records of other nodes

extension Store {
  /// Where the records of another node's commits are to be found after they were taken over.
  package enum RecordPlace: Hashable, Sendable {
    /// They are appended to this store's journal, as they are.
    case appended
    /// They stand in this store's journal already, because the other node writes to the same one.
    case shared
  }

  /// Takes over commits of another node, which has them on its disk: carries them out as a recovery does, with the time
  /// that they were made at, writes the same bytes down, and publishes them as its own commits are. So state, history,
  /// events, digests and what was kept with them are the other node's. `records` follow on one another and on the
  /// store's revision; what the store has already is passed over. `restore` is told, before anything is published, what
  /// was kept with them; it must not call the store.
  ///
  /// Returns when they are published. Throws `replay` where one cannot be carried out or does not follow, and `journal`
  /// where they cannot be written down: then none of them was taken over. Any thread but the writer's; not together
  /// with writes of this node's own, unless the journal is shared.
  package func take(
    _ records: [JournalRecord], _ place: RecordPlace = .appended,
    restore: ([StoredAttachment]) -> Void = { _ in }
  ) throws(StoreError) {
    var transactions: [Transaction] = []
    transactions.reserveCapacity(records.count)
    for record in records { transactions.append(try record.decoded()) }
    let entries = Array(zip(records, transactions))
    let outcome = writer.sync { () -> Result<Void, StoreError> in
      Result { () throws(StoreError) in try self.carryOut(entries, place, restore) }
    }
    // Once those who wait for the commits have them.
    writer.async { self.journal.maintain() }
    try outcome.get()
  }

  private func carryOut(
    _ entries: [(JournalRecord, Transaction)], _ place: RecordPlace, _ restore: ([StoredAttachment]) -> Void
  ) throws(StoreError) {
    if case .recovering = condition { throw .journal(.unusable("the store has not read its journal yet")) }
    try writing.withLock { writing throws(StoreError) in try carryOut(entries, place, &writing, restore) }
  }

  /// On the writer: carries them out, writes them down where they are to be, and publishes them.
  func carryOut(
    _ entries: [(JournalRecord, Transaction)], _ place: RecordPlace, _ writing: inout Writing,
    _ restore: ([StoredAttachment]) -> Void
  ) throws(StoreError) {
    let base = writing.model.revision
    let new = entries.drop { $0.0.revision <= base }
    guard !new.isEmpty else { return }
    var commits: [Commit] = []
    do throws(StoreError) {
      for (record, transaction) in new { commits.append(try record.carryOut(transaction, &writing.model)) }
    } catch {
      undo(&writing)
      throw error
    }
    let records = new.map(\.0)
    let bytes = records.reduce(0) { $0 + $1.body.count }
    if place == .appended {
      do throws(JournalError) {
        try append(records, after: base, &writing)
      } catch {
        undo(&writing)
        writing.refusedBytes = bytes
        becomeUnavailable(error)
        throw .journal(error)
      }
    }
    becomeAvailable()
    if let last = records.last { clock.advance(to: last.milliseconds) }
    leases.note(commits)
    let attachments = records.compactMap { record in
      record.attachment.map {
        StoredAttachment(revision: record.revision, milliseconds: record.milliseconds, bytes: $0)
      }
    }
    if !attachments.isEmpty { restore(attachments) }
    publish(commits, at: records.map(\.milliseconds), writing.model.state, writing.model.revision)
    noteWritten(records: records.count, bytes: bytes)
  }

  /// Tells those who keep the journal short that records were published.
  private func noteWritten(records: Int, bytes: Int) {
    keeper.note(records: records, bytes: bytes, of: self)
    if shared != nil { cacheKeeper.withLock { $0 }?.note(records: records, bytes: bytes, of: self) }
  }

  /// Goes back to what is published: no reader has seen anything else.
  private func undo(_ writing: inout Writing) {
    let snapshot = self.snapshot
    writing.model = Model(state: snapshot.state, revision: snapshot.revision)
    writing.growth.undo()
  }
}

// MARK: - Peers

/// A store over a journal that other nodes append to as well.
extension Store {
  /// Where other nodes append to the journal, takes over what they append, on a thread of its own, until the journal is
  /// closed. To be called after `recover`.
  package func follow() {
    if let shared { PeerRecords.follow(shared, self) }
  }

  /// Takes over records that another node hands to this one, so that they are published when this returns. Where they
  /// do not follow on what this node has, they come by the journal, as always.
  package func take(_ handed: HandedRecords) {
    guard let shared, shared.take(handed) else { return }
    // What goes wrong here goes wrong again where the journal is followed, and is told there.
    try? PeerRecords(store: self).takeOver(from: shared)
  }

  /// Whether an error of the journal says that others have appended, and what they appended was taken over.
  private func isOvertaken(_ error: JournalError, _ writing: inout Writing) -> Bool {
    guard shared != nil, case .unexpectedRevision = error else { return false }
    return (try? PeerRecords(store: self).catchUp(&writing)) != nil
  }

  /// How often a batch of this node was judged anew because another node had appended first.
  package var overtakenBatches: Int { overtaken.load(ordering: .relaxed) }

  /// Whether this node is to do what one node has to do for all.
  var isCaretaker: Bool { shared?.hasPen ?? true }
}

// MARK: - Availability

/// Availability of the journal for writes: found out by writes, and every second between them.
extension Store {
  /// Says that the journal refuses writes.
  func becomeUnavailable(_ error: JournalError) {
    let reason = journal.publicReason(error)
    let isNew = currentCondition.withLock { condition in
      defer { condition = .unavailable(reason) }
      if case .unavailable = condition { return false }
      return true
    }
    if isNew { notify(.refusesWrites(error.description)) }
  }

  /// Says that the journal takes writes.
  private func becomeAvailable() {
    let wasUnavailable = currentCondition.withLock { condition in
      if case .serving = condition { return false }
      defer { condition = .serving }
      if case .unavailable = condition { return true }
      return false
    }
    if wasUnavailable { notify(.takesWrites) }
  }

  /// Looks after the journal, so that no write is needed to find out that it is gone, nor that it is well again: who
  /// asks whether the server is ready, and sends it nothing while it is not, would wait for ever. Called every second.
  func watchJournal() {
    switch condition {
    case .recovering: return
    case .serving:
      guard (try? journal.checkPresence()) == nil else { return }
    case .unavailable: break
    }
    writer.async { [weak self] in self?.tryJournal() }
  }

  /// On the writer: asks the journal whether it would take what it refused. Where it would, the next failure is another
  /// one, and is undone at once.
  private func tryJournal() {
    let bytes = writing.withLock { $0.refusedBytes }
    do throws(JournalError) {
      try journal.probe(bytes: bytes)
      writing.withLock { $0.nextRecovery = .now }
      becomeAvailable()
    } catch {
      if case .unusable = error { return }
      becomeUnavailable(error)
    }
  }
}

// MARK: - Leases

extension Store {
  /// How many objects end by themselves.
  package var leaseCount: Int { leases.count }

  /// Deletes the objects whose time has come, or whose stream is none of those that `isStreamThere` knows by their
  /// numbers. To be called again and again; what it begins goes on when it has returned. What may not be deleted is
  /// tried again when the store has changed.
  package func endLeases(unless isStreamThere: (UInt64) -> Bool) {
    guard condition == .serving else { return }
    leases.endStreams(unless: isStreamThere)
    leases.deleteDue(in: self, lateBy: isCaretaker ? 0 : Self.lateMilliseconds)
  }

  /// After how long a node deletes what is due that another one should have deleted.
  private static var lateMilliseconds: UInt64 { 3_000 }

  /// For how long objects last on after the node is gone that had their stream, in milliseconds: a little shorter than
  /// its clients may come back, as what is due is deleted within a second.
  var streamGrace: UInt64 { UInt64(max(0, limits.streamLeaseSeconds - 1)) * 1_000 }

  /// Ends no lease from now on.
  package func holdLeases() { leases.hold() }
}

// MARK: - Resuming clients

extension Store {
  /// How many revisions old what is kept for resuming clients may become: it keeps the objects of its time alive.
  private static let resumedAge: Revision = 1000

  /// Prepares queries for a client that resumes after a revision, or brings what was prepared up to the published
  /// history: what they were then, and what became of them since. Uses what was prepared for another client and given
  /// back. Leaves out those of which that is no longer known. Throws `malformed-filter` where they cost more than
  /// `request.steps` together, or `isAbandoned` says that they are no longer wanted.
  package func prepare(
    _ queries: some Collection<Query>, after revision: Revision, _ publishedHistory: PublishedHistory,
    _ prepared: inout [Query: PreparedQuery], _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    var cost = limits.queryOpeningCost
    for query in Set(queries) {
      let key = ResumedQueryKey(query: query, after: revision)
      let known = prepared.removeValue(forKey: query) ?? resumedQueries.withLock { $0.take(key) }
      if var entry = known,
        entry.revision >= publishedHistory.snapshot.revision || publishedHistory.commits(after: entry.revision) != nil
      {
        bringUp(&entry, to: publishedHistory)
        prepared[query] = entry
      } else if let missed = missed(after: revision, publishedHistory) {
        var entry = try PreparedQuery(query, missed, limits: limits, cost: &cost, isAbandoned)
        bringUp(&entry, to: publishedHistory)
        prepared[query] = entry
      }
    }
  }

  private func bringUp(_ entry: inout PreparedQuery, to publishedHistory: PublishedHistory) {
    guard entry.revision < publishedHistory.snapshot.revision,
      let commits = publishedHistory.commits(after: entry.revision)
    else { return }
    entry.bringUp(through: commits, to: publishedHistory.snapshot)
  }

  /// Keeps what was prepared for a client that resumed after a revision for the next that do, for a while. Not what is
  /// observed now: the writer would copy its rows.
  package func giveBack(_ prepared: [Query: PreparedQuery], after revision: Revision) {
    for (query, entry) in prepared where entry.failure == nil && entry.past != nil {
      let key = ResumedQueryKey(query: query, after: revision)
      let weight = entry.rowCount + entry.contents.reduce(1) { $0 + $1.changes.count }
      resumedQueries.withLock { $0.put(entry, for: key, at: entry.revision, weight: weight) }
    }
  }

  /// Keeps nothing any longer that is old by now.
  private func forgetResumed(at present: Revision) {
    guard present > Self.resumedAge else { return }
    missedCommits.withLock { $0.forget(before: present - Self.resumedAge) }
    resumedQueries.withLock { $0.forget(before: present - Self.resumedAge) }
  }
}

extension Store {
  /// How many revisions shared results may be behind: their user goes through the rest itself.
  private static let sharedLag: Revision = 64

  /// What happened after a revision up to about the published one, a little before or after it: shared by clients that
  /// ask for the same at about the same time. Nil where the history does not reach back so far.
  package func missed(after revision: Revision, _ publishedHistory: PublishedHistory) -> MissedCommits? {
    if let known = missedCommits.withLock({ $0.item(for: revision) }),
      known.snapshot.revision + Self.sharedLag >= publishedHistory.snapshot.revision
    {
      return known
    }
    guard let missed = MissedCommits(after: revision, publishedHistory) else { return nil }
    missedCommits.withLock { cache in
      _ = cache.take(revision)
      cache.put(missed, for: revision, at: missed.snapshot.revision, weight: missed.commits.count + 1)
    }
    return missed
  }
}

/// The work that two clients which resume a live query have in common.
private struct ResumedQueryKey: Hashable, Sendable {
  let query: Query
  let after: Revision
}
