import KeyValueModel
import Store
import Support
import Testing

/// Leases that last with streams, on several nodes.
@Suite("Leases of streams of several nodes")
struct StreamLeaseTests {
  private final class World {
    let elapsed = Locked<UInt64>(1_000)
    let store: Store
    var leases: StreamLeases { StreamLeases(of: store) }

    init(_ numbers: StreamNumbers) throws {
      let elapsed = elapsed
      store = Store(
        schema: try Schema(yaml: accounts),
        journal: MemoryJournal(identity: JournalIdentity(epoch: "test", schema: "")),
        limits: StoreLimits(), publisher: Recorder(), streams: numbers, now: { 1_000 },
        elapsed: { elapsed.withLock { $0 } })
    }

    func write(_ operations: KeyValueModel.Operation...) async {
      await withCheckedContinuation { continuation in
        _ = store.submit(Transaction(operations)) { _, _, _ in continuation.resume() }
      }
    }

    /// Adds an object that lasts with a stream, and is named after it.
    func add(_ stream: UInt64) async throws {
      let object = try ref("Account/\(stream)")
      await write(.put(object, [:]), .lifetime(object, .stream(stream)))
    }

    /// Deletes the objects that are due. Returns the streams of the remaining ones.
    func rest(unless exists: @escaping (UInt64) -> Bool = { _ in true }) async -> Set<UInt64> {
      for _ in 0..<2 {
        store.endLeases(unless: exists)
        await write()
      }
      return Set(store.snapshot.state.all.compactMap { UInt64($0.key.id) })
    }
  }

  private static func numbers(_ name: String, _ random: UInt64 = 1) -> StreamNumbers {
    StreamNumbers(node: "http://\(name):1", random: random)
  }

  @Test("A number tells whose stream it is, in every start; a node with a journal to itself counts from 1")
  func numbers() {
    let (b, again, c) = (Self.numbers("b"), Self.numbers("b", 2), Self.numbers("c"))
    #expect(b.first != again.first && b.isOwn(again.first + 5) && again.isOwn(b.first + 1))
    #expect(!b.isOwn(c.first + 1) && !b.isOwn(1) && !b.isOwn(1 << 38))
    #expect(StreamNumbers.node(of: b.first + 7) == StreamNumbers.node(at: "http://b:1"))
    #expect(StreamNumbers.node(of: b.first) != StreamNumbers.node(of: c.first))
    let alone = StreamNumbers(node: "http://b:1", random: nil)
    #expect(alone.first == 0 && alone.isOwn(1) && alone.isOwn(b.first + 1) && !alone.isOwn(c.first + 1))
    #expect(StreamNumbers.node(of: 1) == 0 && b.first <= UInt64(Int64.max))
  }

  @Test("Objects that last with streams of other nodes end once these, or their nodes, are reported gone")
  func leader() async throws {
    let world = try World(StreamNumbers(node: "http://a:1", random: nil))
    let (own, b, c) = (UInt64(3), Self.numbers("b").first + 1, Self.numbers("c").first + 1)
    for stream in [own, b, b + 1, c] { try await world.add(stream) }
    #expect(world.leases.nodes == [StreamNumbers.node(of: b), StreamNumbers.node(of: c)])
    #expect(await world.rest { $0 == own } == [own, b, b + 1, c])
    // No node ends the streams of another.
    #expect(world.leases.end([own, 77]) == 0)
    #expect(world.leases.end([b, 77]) == 1)
    #expect(await world.rest() == [own, b + 1, c])
    world.leases.end(ofNodes: [StreamNumbers.node(of: c), 0])
    #expect(await world.rest() == [own, b + 1])
    #expect(world.leases.nodes == [StreamNumbers.node(of: b)])
    #expect(await world.rest { _ in false } == [b + 1])
  }

  @Test("A follower deletes nothing, and says which of its own streams are gone; those of earlier starts after a while")
  func follower() async throws {
    let world = try World(Self.numbers("b"))
    world.leases.leave()
    let (present, closed) = (Self.numbers("b").first + 1, Self.numbers("b").first + 2)
    let (earlier, other) = (Self.numbers("b", 0).first + 1, Self.numbers("c").first + 1)
    for stream in [1, present, closed, earlier, other] { try await world.add(stream) }
    func gone() -> [UInt64] {
      world.leases.gone(unless: { $0 == present }, isOfThisStart: { $0 == present || $0 == closed })
    }
    #expect(gone() == [closed])
    world.elapsed.withLock { $0 += world.leases.grace - 1 }
    #expect(gone() == [closed])
    world.elapsed.withLock { $0 += 1 }
    #expect(gone() == [earlier, closed])
    #expect(world.leases.end([other]) == 0)
    #expect(await world.rest { _ in false } == [1, present, closed, earlier, other])
    world.store.holdLeases()
    #expect(gone() == [])
  }
}
