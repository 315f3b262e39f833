import Dispatch
import Foundation
import KeyValueModel
import KeyValueObserving
import Support
import TestKit
import Testing

@testable import Store

/// A store acknowledges, publishes and serves only what is in the journal.
@Suite("A store whose disk fails")
struct DurabilityTests {
  /// A store over a journal that can fail.
  private struct Fixture {
    let journal: FaultyJournal
    let recorder = Recorder()
    let store: Store

    init(_ journal: FaultyJournal = FaultyJournal(), _ change: (inout StoreLimits) -> Void = { _ in }) throws {
      var limits = StoreLimits()
      change(&limits)
      self.journal = journal
      store = Store(
        schema: try Schema(yaml: accounts), journal: journal, limits: limits, publisher: recorder, now: { 1_000 })
      #expect(try store.recover().isEmpty)
    }

    func write(_ operations: KeyValueModel.Operation...) async -> (Result<Commit, ModelError>, StoreUnavailable?) {
      await withCheckedContinuation { continuation in
        let isAccepted = store.submit(Transaction(operations)) { outcome, _, failure in
          continuation.resume(returning: (outcome, failure))
        }
        #expect(isAccepted)
      }
    }

    func balance(_ object: String = "Account/1") throws -> Value? {
      store.snapshot.state.record(try ref(object))?.values[0]
    }
  }

  private func set(_ value: Int64) throws -> KeyValueModel.Operation {
    .set(try ref("Account/1"), keyPath: "balance", .integer(value))
  }

  @Test("A write that the journal refuses changes nothing, tells nobody and uses no revision")
  func refused() async throws {
    let fixture = try Fixture()
    _ = await fixture.write(.create(try ref("Account/1"), ["balance": .integer(1)]))
    let path = try fixture.store.schema.resolve("balance", from: fixture.store.schema.requireEntity("Account"))
    let observation = Observation(object: try ref("Account/1"), keyPath: path, options: [.new])
    fixture.store.withPublication { publication in
      publication.observers.add([observation], of: ObserverID(1), in: publication.snapshot.state)
    }
    let told = fixture.recorder.published.count
    fixture.journal.faults.withLock { $0.append = .refused("the disk is full") }
    let (_, failure) = await fixture.write(try set(2))
    #expect(failure?.reason == "the disk is full")
    #expect(try fixture.balance() == .integer(1))
    #expect(fixture.store.snapshot.revision == 1)
    #expect(fixture.store.condition == .unavailable("the disk is full"))
    #expect(fixture.recorder.published.count == told)
    #expect(fixture.journal.faults.withLock { $0.recoveries } == 0, "a full disk leaves nothing in doubt")
    fixture.journal.faults.withLock { $0.append = nil }
    let (outcome, none) = await fixture.write(try set(3))
    #expect(none == nil)
    #expect(try outcome.get().revision == 2)
    #expect(try fixture.balance() == .integer(3))
    #expect(fixture.store.condition == .serving)
  }

  @Test("A disk that is full is told once, and once that it is not; meanwhile it is tried without a write")
  func notices() async throws {
    let journal = FaultyJournal()
    let notices = Locked<[StoreNotice]>([])
    let store = Store(
      schema: try Schema(yaml: accounts), journal: journal, limits: StoreLimits(), publisher: Recorder(),
      now: { 1_000 }, notify: { notice in notices.withLock { $0.append(notice) } })
    _ = try store.recover()
    let create = KeyValueModel.Operation.create(try ref("Account/1"), [:])
    for round in 1...2 {
      journal.faults.withLock { $0.append = .refused("full") }
      for _ in 0..<3 {
        let failure = await withCheckedContinuation { continuation in
          _ = store.submit(Transaction([create])) { _, _, failure in continuation.resume(returning: failure) }
        }
        #expect(failure != nil)
      }
      store.watchJournal()
      store.writer.sync {}
      #expect(store.condition == .unavailable("full"))
      journal.faults.withLock { $0.append = nil }
      store.watchJournal()
      store.writer.sync {}
      #expect(store.condition == .serving)
      let told = notices.withLock { $0 }
      #expect(told == Array(repeating: [.refusesWrites("full"), .takesWrites], count: round).flatMap { $0 })
    }
  }

  @Test("Later writes are not evaluated against a state that was not written")
  func judgedByWhatIs() async throws {
    let fixture = try Fixture()
    let create = KeyValueModel.Operation.create(try ref("Account/1"), [:])
    fixture.journal.faults.withLock { $0.append = .refused("full") }
    #expect(await fixture.write(create).1 != nil)
    fixture.journal.faults.withLock { $0.append = nil }
    #expect(try await fixture.write(create).0.get().revision == 1, "it was never there")
  }

  @Test("After a sync that failed the journal reads itself back before it takes anything, and not at every write")
  func untrusted() async throws {
    let fixture = try Fixture()
    _ = await fixture.write(.create(try ref("Account/1"), [:]))
    fixture.journal.faults.withLock { faults in
      faults.append = .untrusted("cannot be synced")
      faults.recover = .untrusted("still not")
    }
    let start = ContinuousClock.now
    for _ in 0..<20 { #expect(await fixture.write(try set(2)).1 != nil) }
    let attempts = fixture.journal.faults.withLock { $0.recoveries }
    // Attempts are limited by time, not by write: a few each second, however long the writes take.
    let seconds = Int((ContinuousClock.now - start).components.seconds)
    #expect(attempts >= 1 && attempts <= 3 * (seconds + 2), "\(attempts) attempts in \(seconds) s")
    fixture.journal.faults.withLock { $0.recover = nil }
    #expect(try await Deadline().comes(pauseMilliseconds: 20) { await fixture.write(try set(3)).1 == nil })
    #expect(try fixture.balance() == .integer(3))
    #expect(fixture.store.snapshot.revision == 2)
  }

  @Test("Writes that wait for a sync share the next one, and nobody reads what is not synced")
  func groupCommit() async throws {
    let journal = FaultyJournal()
    let fixture = try Fixture(journal)
    _ = await fixture.write(.create(try ref("Account/1"), ["balance": .integer(0)]))
    let held = DispatchSemaphore(value: 0)
    let reached = DispatchSemaphore(value: 0)
    journal.faults.withLock { faults in
      faults.syncs = 0
      faults.hold = {
        reached.signal()
        held.wait()
      }
    }
    let answers = Locked(0)
    func submit(_ value: Int64) throws {
      let transaction = Transaction([try set(value)])
      #expect(fixture.store.submit(transaction) { _, _, _ in answers.withLock { $0 += 1 } })
    }
    try submit(1)
    reached.wait()
    for value in 2...100 { try submit(Int64(value)) }
    #expect(try fixture.balance() == .integer(0), "not synced yet")
    #expect(answers.withLock { $0 } == 0)
    journal.faults.withLock { $0.hold = nil }
    held.signal()
    #expect(await fixture.write(try set(101)).1 == nil)
    #expect(try fixture.balance() == .integer(101))
    #expect(answers.withLock { $0 } == 100)
    #expect(journal.faults.withLock { $0.syncs } <= 4)
  }

  @Test("Large writes do not all go into one batch")
  func batches() async throws {
    let fixture = try Fixture(FaultyJournal()) { $0.batchBytes = 1000 }
    _ = await fixture.write(.create(try ref("Account/1"), [:]))
    let gate = Gate()
    gate.close(fixture.store)
    fixture.journal.faults.withLock { $0.syncs = 0 }
    let answers = Locked<[Revision]>([])
    for _ in 0..<10 {
      let note = KeyValueModel.Operation.set(
        try ref("Account/1"), keyPath: "note", .string(String(repeating: "x", count: 400)))
      _ = fixture.store.submit(Transaction([note])) { outcome, _, _ in
        let revision = try? outcome.get().revision
        answers.withLock { $0.append(revision ?? 0) }
      }
    }
    gate.open()
    #expect(await fixture.write(try set(1)).1 == nil)
    #expect(answers.withLock { $0 } == Array(3...12))
    #expect(fixture.journal.faults.withLock { $0.syncs } >= 4)
  }
}
