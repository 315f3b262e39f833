import KeyValueModel
import KeyValueObserving
import Store
import Support
import Testing

@Suite("The store")
struct StoreTests {
  @Test("Commits get the next revision each, and are published in order")
  func order() async throws {
    let fixture = try StoreFixture()
    #expect(
      (fixture.store.snapshot.revision, fixture.store.snapshot.state.count, fixture.store.epoch) == (0, 0, "test"))
    for number in 1...5 {
      let commit = try #require(await fixture.write(.create(try ref("Account/\(number)"), [:]))).get()
      #expect(commit.revision == Revision(number))
      #expect(fixture.store.snapshot.revision == commit.revision, "the answer comes after publication")
    }
    #expect(fixture.recorder.published.map(\.upTo) == [1, 2, 3, 4, 5])
    #expect(fixture.store.snapshot.state.count == 5)
  }

  @Test("A write that fails publishes nothing and uses no revision")
  func failure() async throws {
    let fixture = try StoreFixture()
    await fixture.write(.create(try ref("Account/1"), ["balance": .integer(1)]))
    fixture.observe([try fixture.observation("Account/1", "balance")])
    let outcome = await fixture.write(
      .set(try ref("Account/1"), keyPath: "balance", .integer(2)), .set(try ref("Account/2"), keyPath: "note", .null))
    #expect(throws: ModelError.self) { try outcome?.get() }
    #expect(fixture.store.snapshot.revision == 1)
    #expect(fixture.recorder.published.map(\.upTo) == [1])
    #expect(fixture.store.withPublication { $0.history.count } == 1)
    let commit = try #require(await fixture.write(.set(try ref("Account/1"), keyPath: "balance", .integer(3)))).get()
    #expect(commit.revision == 2)
    #expect(fixture.recorder.published.last?.events.map(describe) == ["2 w [\"Account/1.balance 1 3\"] []"])
  }

  @Test("Writes that wait while the writer is busy become one batch, with revisions and events in order")
  func batch() async throws {
    let fixture = try StoreFixture()
    await fixture.write(.create(try ref("Account/1"), ["balance": .integer(0)]))
    fixture.observe([try fixture.observation("Account/1", "balance")])
    let gate = Gate()
    gate.close(fixture.store)
    let concluded = Locked<[String]>([])
    for number in 1...4 as ClosedRange<Int64> {
      let value: Value = number == 3 ? .string("no") : .integer(number)
      let transaction = Transaction([.set(try ref("Account/1"), keyPath: "balance", value)])
      let revision = Locked("failed")
      let write = ConcludedWrite(transaction) { outcome, state in
        // The state is the one right after this transaction.
        let seen = Reference("Account/1").flatMap { state.record($0)?.values[0].json } ?? "?"
        if case .success(let commit) = outcome { revision.withLock { $0 = "\(commit.revision)" } }
        concluded.withLock { $0.append("\(revision.withLock { $0 }) \(seen)") }
      } finish: {
        concluded.withLock { $0.append("after \(revision.withLock { $0 })") }
      }
      #expect(fixture.store.submit(write))
    }
    #expect(fixture.store.queuedWrites == 4)
    #expect(fixture.store.snapshot.revision == 1, "what is not published cannot be read")
    gate.open()
    await fixture.drain()
    #expect(
      concluded.withLock { $0 } == [
        "3 1", "4 2", "failed 2", "5 4", "after 3", "after 4", "after failed", "after 5",
      ])
    let batch = try #require(fixture.recorder.published.first { $0.upTo >= 3 })
    #expect(
      batch.events.map(describe) == [
        "3 - [\"Account/1.balance 0 1\"] []", "4 - [\"Account/1.balance 1 2\"] []",
        "5 - [\"Account/1.balance 2 4\"] []",
      ])
  }

  @Test("One write more than may wait is refused, and never concluded")
  func overload() async throws {
    let fixture = try StoreFixture { $0.queuedWrites = 3 }
    let gate = Gate()
    gate.close(fixture.store)
    let concluded = Locked(0)
    func submit() -> Bool {
      fixture.store.submit(Transaction([])) { _, _, _ in concluded.withLock { $0 += 1 } }
    }
    #expect((submit(), submit(), submit(), submit(), submit()) == (true, true, true, false, false))
    #expect(fixture.store.queuedWrites == 3)
    gate.open()
    await fixture.drain()
    #expect(concluded.withLock { $0 } == 3)
    #expect(fixture.store.snapshot.revision == 5)
    #expect(submit(), "there is room again")
    await fixture.drain()
  }

  @Test("Writers at once get every revision once, and events come in the order of revisions")
  func concurrency() async throws {
    let fixture = try StoreFixture()
    await fixture.write(.create(try ref("Account/1"), ["balance": .integer(0)]))
    fixture.observe([try fixture.observation("Account/1", "balance")])
    let account = try ref("Account/1")
    let revisions = try await withThrowingTaskGroup(of: [Revision].self) { group in
      for writer in 0..<8 as Range<Int64> {
        group.addTask {
          var revisions: [Revision] = []
          for number in 0..<50 as Range<Int64> {
            let outcome = await fixture.write(.set(account, keyPath: "balance", .integer(writer * 100 + number)))
            revisions.append(try #require(outcome).get().revision)
          }
          return revisions
        }
      }
      var all: [Revision] = []
      for try await revisions in group {
        #expect(revisions == revisions.sorted(), "one writer's writes keep their order")
        all += revisions
      }
      return all
    }
    #expect(revisions.sorted() == Array(2...401))
    let batches = fixture.recorder.published
    let events = batches.flatMap(\.events)
    #expect(events.map(\.revision) == Array(2...401))
    #expect(batches.allSatisfy { batch in batch.events.allSatisfy { $0.revision <= batch.upTo } })
    var last = Value.integer(0)
    for change in events.flatMap(\.changes) {
      #expect(change.old == last)
      last = change.new ?? .null
    }
    #expect(fixture.store.snapshot.state.record(account)?.values[0] == last)
  }
}
