import Glibc
import HTTPTypes
import Logging
import Synchronization
import Testing

@testable import HTTPServer

/// Throttling of connections by the time that the threads spent on their addresses. The tests pass the times.
@Suite struct PacerTests {
  private let context: ServerContext
  private let pacer = TrafficPacer(beginningsPerSecond: 100_000)

  init() throws {
    // Half of the time of two threads: two milliseconds in each tick of two.
    let limits = ServerLimits.with { ($0.threads, $0.timePercent) = (2, 50) }
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    let hub = StreamHub(limits: limits, ledger: ledger, logger: logger)
    context = try #require(
      ServerContext(
        limits: limits, ledger: ledger, hub: hub,
        handler: TestHandler(hub: hub) { _, _ in .response(Response(status: .ok)) },
        conditions: ConditionLog(logger: logger), accessLog: nil, proxies: try TrustedProxies(["192.0.2.9"]),
        isLocal: false, logger: logger))
  }

  private func connection(
    _ client: String, descriptor: Int32 = -1, hasBegun: Bool = true
  ) throws -> Connection {
    let address = try #require(ClientAddress(client))
    let connection = Connection(
      descriptor: descriptor, slot: try #require(context.limiter.admit(address)), server: context,
      attention: ThreadAttention())
    connection.hasBegun.store(hasBegun, ordering: .relaxed)
    return connection
  }

  private func mayRead(_ connection: Connection, _ milliseconds: Int64, whenFirst wake: () -> Void = {}) -> Bool {
    pacer.mayRead(connection, now: milliseconds, nanoseconds: { milliseconds * 1_000_000 }, whenFirst: wake)
  }

  /// Lets both addresses make requests at the same moment, so that for a second neither is alone.
  private func meet(_ first: Connection, _ second: Connection, _ milliseconds: Int64) {
    for connection in [first, second, first] { #expect(mayRead(connection, milliseconds)) }
  }

  private func goOn(_ milliseconds: Int64) -> [Connection] {
    pacer.goOn(now: milliseconds, nanoseconds: milliseconds * 1_000_000)
  }

  @Test func oneThatTookItsTimeWaitsForItsNextWhileOthersGoOn() throws {
    let (hostile, other) = (try connection("192.0.2.1"), try connection("192.0.2.2"))
    meet(hostile, other, 1_000)
    hostile.slot.time.count(5_000_000)
    var wakes = 0
    for _ in 0..<2 { #expect(!mayRead(hostile, 1_000) { wakes += 1 }) }
    #expect(wakes == 1 && hostile.waitsForTurn.load(ordering: .relaxed))
    #expect(mayRead(other, 1_000))
    #expect(goOn(1_002).isEmpty && !pacer.isEmpty)
    #expect(goOn(1_004).map(\.slot.address) == [hostile.slot.address] && pacer.isEmpty)
    #expect(mayRead(hostile, 1_004))
  }

  @Test func noMoreGoOnThanHaveTime() throws {
    let other = try connection("192.0.2.2")
    let crowd = try (0..<100).map { _ in try connection("192.0.2.1") }
    meet(crowd[0], other, 1_000)
    crowd[0].slot.time.count(3_900_000)
    for connection in crowd { #expect(!mayRead(connection, 1_000)) }
    // A tenth of a millisecond is left in the next tick, for two that take half of it each, and one more.
    #expect(goOn(1_002).count == 3)
    #expect(goOn(1_004).count == 41)
    // Once the address is alone, all its connections may continue.
    #expect(goOn(5_000).count == 56)
  }

  @Test func oneThatIsAloneOrAProxyTakesAnyTime() throws {
    let (hostile, other) = (try connection("192.0.2.1"), try connection("192.0.2.2"))
    let proxy = try connection("192.0.2.9")
    hostile.slot.time.count(900_000_000)
    #expect(mayRead(hostile, 1_000) && pacer.mayBegin(hostile.slot, now: 1_000, nanoseconds: 1_000_000_000))
    meet(hostile, other, 1_000)
    meet(proxy, other, 1_000)
    for connection in [hostile, proxy] { connection.slot.time.count(900_000_000) }
    #expect(mayRead(other, 1_000) && !mayRead(hostile, 1_000) && mayRead(proxy, 1_000))
    #expect(!pacer.mayBegin(hostile.slot, now: 1_000, nanoseconds: 1_000_000_000))
    #expect(pacer.mayBegin(proxy.slot, now: 1_000, nanoseconds: 1_000_000_000))
    #expect(pacer.mayBegin(hostile.slot, now: 2_500, nanoseconds: 1_000_000_000))
  }

  @Test func aNewConnectionDoesNotWaitBehindThoseOfAnotherThatHadItsShare() throws {
    let ends = try (0..<2).map { _ in try unreadPair() }
    defer { for descriptor in ends.joined() { close(descriptor) } }
    let hostile = try connection("192.0.2.1", descriptor: ends[0][0], hasBegun: false)
    let other = try connection("192.0.2.2", descriptor: ends[1][0], hasBegun: false)
    meet(try connection("192.0.2.1"), try connection("192.0.2.2"), 1_000)
    hostile.slot.time.count(9_000_000)
    #expect(!mayRead(hostile, 1_000))
    #expect(mayRead(other, 1_000))
  }

  @Test func fewerConnectionsBeginWhileOthersGoOn() throws {
    // Ten may begin in two milliseconds, or two while others continue.
    let pacer = TrafficPacer(beginningsPerSecond: 5_000)
    let ends = try unreadPair()
    defer { for descriptor in ends { close(descriptor) } }
    let crowd = try (0..<30).map { _ in try connection("192.0.2.1", descriptor: ends[0], hasBegun: false) }
    func goOn(_ milliseconds: Int64) -> Int {
      pacer.goOn(now: milliseconds, nanoseconds: milliseconds * 1_000_000).count
    }
    pacer.wentOn(now: 1_000)
    let begun = crowd.prefix { connection in
      guard pacer.mayRead(connection, now: 1_000, nanoseconds: { 1_000_000_000 }, whenFirst: {}) else { return false }
      pacer.begun(now: 1_000)
      return true
    }
    #expect(begun.count == 2)
    for connection in crowd.dropFirst(2) {
      #expect(!pacer.mayRead(connection, now: 1_001, nanoseconds: { 1_001_000_000 }, whenFirst: {}))
    }
    #expect(goOn(1_001) == 0)
    #expect(goOn(1_002) == 2)
    #expect(goOn(1_098) == 2)
    #expect(goOn(1_100) == 10)
    pacer.wentOn(now: 1_101)
    #expect(goOn(1_102) == 2)
    #expect(goOn(1_300) == 10)
    #expect(goOn(1_302) == 2)
    #expect(pacer.isEmpty)
  }

  @Test func oneThatWaitsIsNotWokenBecauseItHasSomethingUnread() throws {
    let ends = try (0..<2).map { _ in try unreadPair() }
    defer { for descriptor in ends.joined() { close(descriptor) } }
    for pair in ends { context.registry.insert(try connection("192.0.2.1", descriptor: pair[0])) }
    #expect(context.registry.wakeUnread() == 2)
    let waiting = try connection("192.0.2.1", descriptor: ends[0][0])
    waiting.waitsForTurn.store(true, ordering: .relaxed)
    context.registry.insert(waiting)
    #expect(context.registry.wakeUnread() == 2)
  }

  @Test func theTimeOfAThreadIsThatOfTheConnectionItTurnedTo() {
    let (first, second) = (TrafficShare(nanosecondsPerSecond: 1), TrafficShare(nanosecondsPerSecond: 1))
    let attention = ThreadAttention()
    var clock: Int64 = 7_000
    func turn(to share: TrafficShare?, after nanoseconds: Int64) {
      clock += nanoseconds
      attention.turn(to: share) { clock }
    }
    turn(to: nil, after: 100)
    turn(to: first, after: 1_000)
    turn(to: second, after: 20)
    turn(to: first, after: 300)
    turn(to: nil, after: 4)
    turn(to: nil, after: 5_000)
    #expect(first.rest(now: 0) == 1 - 24)
    #expect(second.rest(now: 0) == 1 - 300)
  }

  /// Returns the two ends of a connection. One byte was sent to the first.
  private func unreadPair() throws -> [Int32] {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    #expect(write(ends[1], "G", 1) == 1)
    return ends
  }
}
