import Foundation
import KeyValueModel
import Store
import Support
import TestKit
import Testing

/// Objects that expire, in a store whose clocks the test sets.
@Suite("Leases")
struct LeaseTests {
  private struct Clock: Sendable {
    /// The wall clock in milliseconds since 1970, which jumps.
    var wall: Int64 = 1_700_000_000_000
    /// The monotonic clock in milliseconds.
    var elapsed: UInt64 = 5_000
  }

  private static let yaml = """
    entities:
      Account:
        keys:
          balance: { type: integer }
          owner: { toOne: Account, delete: deny }
          parts: { toMany: Account, delete: cascade }
    """

  /// A store on a disk, and the test's own knowledge of it.
  private final class World {
    let path = FileManager.default.temporaryDirectory.appending(path: "keyway-leases-\(UUID().uuidString)").path
    let clock = Locked(Clock())
    var store: Store
    /// The open streams.
    var streams: Set<UInt64> = [1, 2, 3]
    static let grace: UInt64 = 29_000
    /// The date of the last commit, and the monotonic clock at that time.
    private var dated: (time: Int64, elapsed: UInt64) = (0, 0)

    deinit {
      store.close()
      try? FileManager.default.removeItem(atPath: path)
    }

    init() throws {
      let clock = clock
      store = try Self.open(path, clock)
    }

    private static func open(_ path: String, _ clock: Locked<Clock>) throws -> Store {
      var limits = StoreLimits()
      limits.streamLeaseSeconds = 30
      limits.snapshotRevisions = 7
      limits.historyRevisions = 3
      let journal = try SQLiteJournal(directory: path, durability: .synced) {
        JournalIdentity(epoch: "test", schema: LeaseTests.yaml)
      }
      let store = Store(
        schema: try Schema(yaml: LeaseTests.yaml), journal: journal, limits: limits, publisher: Recorder(),
        now: { clock.withLock { $0.wall } }, elapsed: { clock.withLock { $0.elapsed } })
      #expect(try store.recover().isEmpty)
      return store
    }

    /// Returns the date of a commit made now: never back, and at half speed until the wall clock has caught up.
    func date() -> Clock {
      var now = clock.withLock { $0 }
      let next = dated.time + Int64((now.elapsed - dated.elapsed) / 2)
      if now.wall >= next { dated = (now.wall, now.elapsed) } else { now.wall = next }
      return now
    }

    func restart() throws {
      let now = date()
      dated = (now.wall, now.elapsed)
      store.close()
      store = try Self.open(path, clock)
    }

    func advance(_ milliseconds: Int64) {
      clock.withLock {
        $0.wall += milliseconds
        $0.elapsed += UInt64(milliseconds)
      }
    }

    @discardableResult
    func write(_ operations: KeyValueModel.Operation...) async -> Bool {
      let store = store
      return await withCheckedContinuation { continuation in
        _ = store.submit(Transaction(operations)) { outcome, _, _ in
          continuation.resume(returning: (try? outcome.get()) != nil)
        }
      }
    }

    /// Lets the store delete the objects that are due, and waits for that.
    func sweep() async {
      for _ in 0..<3 {
        store.endLeases { self.streams.contains($0) }
        // Leases that are retried one by one end after these writes.
        for _ in 0..<2 { await write() }
      }
    }

    var names: [String] { store.snapshot.state.all.map(\.key.text).sorted() }
    var blocks: [[UInt8]] {
      var encoder = StateEncoder(store.snapshot.state)
      var blocks: [[UInt8]] = []
      while let block = encoder.nextBlock() { blocks.append(block) }
      return blocks
    }
  }

  /// The expected lease of one object, by a naive reading of the specification.
  private struct Expected {
    /// The end in milliseconds of the monotonic clock; nil if only a stream ends the object.
    var due: UInt64?
    var seconds: Int64 = 0
    var deadline: Int64 = 0
    var stream: UInt64?

    /// Applies a restart.
    mutating func restart(at now: Clock) {
      if stream != nil {
        // It has no seconds, even after another restart.
        self = Expected(due: now.elapsed + World.grace)
      } else if due != nil, seconds > 0 {
        due = now.elapsed + UInt64(min(max(deadline - now.wall, 0), seconds * 1_000))
      } else if due != nil {
        due = now.elapsed + World.grace
      }
    }
  }

  private func lifetime(_ streams: Set<UInt64>, _ random: inout SplitMix64) -> Lifetime? {
    switch Int.random(in: 0..<6, using: &random) {
    case 0..<2: .seconds(Int64.random(in: 1...40, using: &random))
    case 2: streams.randomElement(using: &random).map(Lifetime.stream)
    case 3: .unlimited
    default: nil
    }
  }

  @Test("Objects end when they should, whatever is written, whatever the clock does, however often it starts again")
  func random() async throws {
    var random = SplitMix64(seed: seed)
    let world = try World()
    // From here on the store knows the time that `date` begins with, even if the wall clock is set back first.
    await world.write()
    var expected: [String: Expected] = [:]
    for step in 0..<400 {
      let name = "Account/\(Int.random(in: 0..<8, using: &random))"
      let object = try ref(name)
      let now = world.date()
      let lifetime = lifetime(world.streams, &random)
      let leasing = lifetime.map { [KeyValueModel.Operation.lifetime(object, $0)] } ?? []
      var isWritten = false
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<3: isWritten = await write([.put(object, ["balance": .integer(Int64(step))])] + leasing, world)
      case 3: isWritten = await write([.patch(object, [:])] + leasing, world)
      case 4:
        // Refused as a whole if the object does not exist.
        #expect(await world.write(.delete(object)) == (expected.removeValue(forKey: name) != nil), "seed \(seed)")
      case 5 where expected[name] != nil:
        #expect(await write([.delete(object), .create(object, [:])] + leasing, world), "seed \(seed)")
        expected[name] = nil
        isWritten = true
      case 5, 6: world.advance(Int64.random(in: 1...15_000, using: &random))
      case 7: world.clock.withLock { $0.wall += Int64.random(in: -100_000...100_000, using: &random) }
      case 8 where Int.random(in: 0..<3, using: &random) == 0:
        if let stream = world.streams.randomElement(using: &random), world.streams.count > 1 {
          world.streams.remove(stream)
          world.streams.insert(stream + 10)
        }
      case 9 where Int.random(in: 0..<2, using: &random) == 0:
        let blocks = world.blocks
        try world.restart()
        #expect(world.blocks == blocks, "seed \(seed), step \(step): other leases")
        for name in expected.keys { expected[name]?.restart(at: now) }
      default: break
      }
      if isWritten {
        var entry = expected[name] ?? Expected()
        switch lifetime {
        case .seconds(let seconds):
          entry = Expected(
            due: now.elapsed + UInt64(seconds) * 1_000, seconds: seconds, deadline: now.wall + seconds * 1_000)
        case .stream(let number): entry = Expected(stream: number)
        case .unlimited: entry = Expected()
        case nil: break
        }
        expected[name] = entry
      }
      await world.sweep()
      let present = world.clock.withLock { $0.elapsed }
      expected = expected.filter { _, entry in
        entry.due.map { $0 > present } ?? entry.stream.map { world.streams.contains($0) } ?? true
      }
      #expect(world.names == expected.keys.sorted(), "seed \(seed), step \(step)")
      let leased = expected.values.filter { $0.due != nil || $0.stream != nil }.count
      #expect(world.store.leaseCount == leased, "seed \(seed), step \(step)")
    }
  }

  private func write(_ operations: [KeyValueModel.Operation], _ world: World) async -> Bool {
    let store = world.store
    return await withCheckedContinuation { continuation in
      _ = store.submit(Transaction(operations)) { outcome, _, _ in
        continuation.resume(returning: (try? outcome.get()) != nil)
      }
    }
  }

  @Test("A lease whose deletion is denied ends once nothing denies it, and holds up no other")
  func denied() async throws {
    let world = try World()
    let (one, two) = (try ref("Account/1"), try ref("Account/2"))
    await world.write(.create(two, [:]))
    await world.write(.create(one, ["owner": .string("Account/2")]), .lifetime(one, .seconds(1)))
    for number in 10..<20 {
      let other = try ref("Account/\(number)")
      await world.write(.create(other, [:]), .lifetime(other, .seconds(1)))
    }
    world.advance(1_000)
    await world.sweep()
    #expect(world.names == ["Account/1", "Account/2"])
    for _ in 0..<10 {
      world.advance(10_000)
      await world.sweep()
    }
    #expect(world.names == ["Account/1", "Account/2"])
    await world.write(.set(one, keyPath: "owner", .null))
    world.advance(4_000)
    await world.sweep()
    #expect(world.names == ["Account/2"])
  }

  @Test("Of many that are due at once each ends, also those that another takes along")
  func crowd() async throws {
    let world = try World()
    let parent = try ref("Account/parent")
    await world.write(.create(parent, [:]), .lifetime(parent, .seconds(5)))
    for number in 0..<700 {
      let object = try ref("Account/\(number)")
      await world.write(.create(object, [:]), .lifetime(object, .seconds(5)))
      if number % 50 == 0 {
        await world.write(.insert(parent, keyPath: "parts", [.value(.string(object.text))], at: nil))
      }
    }
    world.advance(4_999)
    await world.sweep()
    #expect(world.names.count == 701)
    let revision = world.store.revision
    world.advance(1)
    for _ in 0..<400 where world.store.leaseCount > 0 {
      await world.sweep()
      world.advance(500)
    }
    #expect(world.names == [])
    #expect(world.store.revision > revision)
  }

  @Test("Clients that write do not wait for the many objects that end at the same moment")
  func turns() async throws {
    let world = try World()
    let operations = try (0..<400).flatMap { number in
      let object = try ref("Account/\(number)")
      return [KeyValueModel.Operation.create(object, [:]), .lifetime(object, .seconds(10))]
    }
    #expect(await write(operations, world))
    world.advance(10_000)
    let gate = Gate()
    gate.close(world.store)
    world.store.endLeases { _ in true }
    let left = Locked<[Int]>([])
    for number in 0..<200 {
      let put = Transaction([.put(try ref("Account/1000"), ["balance": .integer(Int64(number))])])
      let write = ConcludedWrite(put, of: 7) { _, state in left.withLock { $0.append(state.count - 1) } }
      #expect(world.store.submit(write))
    }
    gate.open()
    await world.sweep()
    while left.withLock({ $0.count }) < 200 { await world.write() }
    // The number that end before the later writes depends on the time that each write takes.
    let ended = 400 - (left.withLock { $0.first } ?? 0)
    #expect(ended <= 128, "\(ended) had ended before the first write")
    while world.store.leaseCount > 0 { await world.sweep() }
    #expect(world.names == ["Account/1000"])
  }

  @Test("A renewal that the writer has before the deletion wins")
  func renewal() async throws {
    let world = try World()
    let one = try ref("Account/1")
    await world.write(.create(one, [:]), .lifetime(one, .seconds(10)))
    world.advance(10_000)
    let gate = Gate()
    gate.close(world.store)
    let renewed = Locked(false)
    _ = world.store.submit(Transaction([.patch(one, [:]), .lifetime(one, .seconds(10))])) { outcome, _, _ in
      let isWritten = (try? outcome.get()) != nil
      renewed.withLock { $0 = isWritten }
    }
    world.store.endLeases { _ in true }
    gate.open()
    await world.sweep()
    #expect(renewed.withLock { $0 })
    #expect(world.names == ["Account/1"])
    world.advance(10_000)
    await world.sweep()
    #expect(world.names == [])
  }
}
