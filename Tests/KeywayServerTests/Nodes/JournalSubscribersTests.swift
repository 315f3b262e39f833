import HTTPServer
import Testing

@testable import KeywayServer

@Suite("The subscribers of the journal, and their positions")
struct JournalSubscribersTests {
  private let a = StreamID(1)
  private let b = StreamID(2)

  /// The table, to be changed within an expectation.
  private final class Table {
    private var table = JournalSubscribers()

    var front: UInt64 { table.front }
    var isEmpty: Bool { table.isEmpty }

    func begin(at present: UInt64) { table.begin(at: present) }
    func add(_ id: StreamID, deliveredUpTo revision: UInt64) { table.add(id, deliveredUpTo: revision) }
    func remove(_ id: StreamID) { table.remove(id) }
    func beginLag(_ id: StreamID, lastNotified: UInt64) { table.beginLag(id, lastNotified: lastNotified) }
    func advance(to revision: UInt64) -> [StreamID] { table.advance(to: revision) }
    func revisionToGoOnFrom(_ id: StreamID) -> UInt64? { table.revisionToGoOnFrom(id) }
    func move(_ id: StreamID, to revision: UInt64) -> Bool { table.move(id, to: revision) }
  }

  @Test("The first one brings the present with it, and who comes later finds the others where they are")
  func beginning() {
    let table = Table()
    table.begin(at: 5)
    table.add(a, deliveredUpTo: 5)
    table.begin(at: 9)
    #expect(table.front == 5)
    #expect(table.revisionToGoOnFrom(a) == nil)
    table.remove(a)
    table.begin(at: 9)
    #expect(table.front == 9)
  }

  @Test("One that is behind goes on until it is where the others are, wherever they are by then")
  func behind() {
    let table = Table()
    table.begin(at: 5)
    table.add(a, deliveredUpTo: 2)
    #expect(table.revisionToGoOnFrom(a) == 2)
    #expect(!table.move(a, to: 4))
    #expect(table.advance(to: 7).isEmpty)
    #expect(!table.move(a, to: 5))
    #expect(table.revisionToGoOnFrom(a) == 5)
    #expect(table.move(a, to: 7))
    #expect(table.revisionToGoOnFrom(a) == nil)
  }

  @Test("One that is ahead waits until the others have come as far")
  func ahead() {
    let table = Table()
    table.begin(at: 5)
    table.add(a, deliveredUpTo: 5)
    table.add(b, deliveredUpTo: 8)
    #expect(table.revisionToGoOnFrom(b) == nil)
    #expect(table.advance(to: 7).isEmpty)
    #expect(table.advance(to: 9) == [b])
    #expect(table.advance(to: 10).isEmpty)
    #expect(table.revisionToGoOnFrom(b) == 8)
  }

  @Test("One that is ahead and does not ask before the others have come as far need not wait")
  func aheadForAMoment() {
    let table = Table()
    table.begin(at: 5)
    table.add(a, deliveredUpTo: 5)
    table.add(b, deliveredUpTo: 6)
    #expect(table.advance(to: 6).isEmpty)
    #expect(table.revisionToGoOnFrom(b) == 6)
    #expect(table.move(b, to: 6))
  }

  @Test("One that is slow begins again where it was; one that has left is unknown")
  func lagging() {
    let table = Table()
    table.begin(at: 5)
    table.add(a, deliveredUpTo: 5)
    table.add(b, deliveredUpTo: 9)
    table.beginLag(a, lastNotified: 3)
    #expect(table.revisionToGoOnFrom(a) == 3)
    #expect(table.revisionToGoOnFrom(b) == nil)
    table.remove(a)
    table.remove(b)
    table.beginLag(a, lastNotified: 3)
    #expect(table.revisionToGoOnFrom(a) == nil)
    #expect(table.revisionToGoOnFrom(b) == nil)
    #expect(table.advance(to: 9).isEmpty)
    #expect(table.isEmpty)
  }
}

@Suite("The last events of a feed")
struct FeedTailTests {
  private func event(_ revision: UInt64) -> EventBytes {
    EventBytes(Array(repeating: 97, count: 10), position: StreamPosition.commit(revision).rawValue)
  }

  private func revisions(_ events: [EventBytes]?) -> [UInt64]? {
    events?.map { StreamPosition(rawValue: $0.position).revision }
  }

  @Test("It knows the last ones, as many as have room, and gives at least one")
  func bounds() {
    var tail = FeedTail(byteLimit: 40)
    #expect(tail.events(after: 0, bytes: 100) == nil)
    for revision in 5...10 { tail.append(event(UInt64(revision))) }
    #expect(tail.events(after: 5, bytes: 100) == nil)
    #expect(revisions(tail.events(after: 6, bytes: 100)) == [7, 8, 9, 10])
    #expect(revisions(tail.events(after: 6, bytes: 15)) == [7, 8])
    #expect(revisions(tail.events(after: 9, bytes: 1)) == [10])
    #expect(tail.events(after: 10, bytes: 100) == nil)
    tail.removeAll()
    #expect(tail.events(after: 9, bytes: 100) == nil)
    tail.append(event(20))
    #expect(revisions(tail.events(after: 19, bytes: 100)) == [20])
    #expect(tail.events(after: 10, bytes: 100) == nil)
  }

  @Test("One that is larger than the room is not kept")
  func large() {
    var tail = FeedTail(byteLimit: 5)
    tail.append(event(1))
    #expect(tail.events(after: 0, bytes: 100) == nil)
    tail.append(event(2))
    #expect(tail.events(after: 1, bytes: 100) == nil)
  }
}
