import HTTPServer
import Seeding
import Testing

@testable import KeywayAPI

@Suite("A line that clients take by turns")
struct FairLineTests {
  private let greedy = ClientAddress(number: 1)
  private let modest = ClientAddress(number: 2)

  private func line(_ limit: Int = 100, clientLimit: Int = 100, running: Int = 1) -> FairLine<String> {
    FairLine(limit: limit, clientLimit: clientLimit, runningLimit: running)
  }

  /// Adds things for a client; gives how many there was room for.
  private func add(_ items: [String], for client: ClientAddress, to line: inout FairLine<String>) -> Int {
    var count = 0
    for item in items where line.append(item, for: client) { count += 1 }
    return count
  }

  private func next(_ count: Int, of line: inout FairLine<String>) -> [String] {
    var items: [String] = []
    for _ in 0..<count {
      if let next = line.next() { items.append(next.item) }
    }
    return items
  }

  @Test("What one client asks for comes before most of the forty things that another asked for first")
  func turns() {
    var line = line(running: 100)
    _ = add((0..<40).map { "g\($0)" }, for: greedy, to: &line)
    let first = next(1, of: &line)
    _ = add(["m0", "m1"], for: modest, to: &line)
    #expect(first + next(5, of: &line) == ["g0", "g1", "m0", "g2", "m1", "g3"])
  }

  @Test("A client has no more at work than it may, and another goes on")
  func running() {
    var line = line()
    _ = add(["g0", "g1", "g2"], for: greedy, to: &line)
    #expect(next(2, of: &line) == ["g0"])
    _ = add(["m0"], for: modest, to: &line)
    #expect(next(2, of: &line) == ["m0"])
    line.finish(greedy)
    #expect(next(2, of: &line) == ["g1"])
  }

  @Test("A client that fills its share is refused, and another is not")
  func shares() {
    var line = line(4, clientLimit: 2)
    #expect(add(["g0", "g1", "g2"], for: greedy, to: &line) == 2)
    #expect(add(["m0", "m1"], for: modest, to: &line) == 2)
    #expect(add(["o0"], for: ClientAddress(number: 3), to: &line) == 0)
    #expect(next(1, of: &line) == ["g0"])
    #expect(add(["g2"], for: greedy, to: &line) == 0)
    line.finish(greedy)
    #expect(add(["g2"], for: greedy, to: &line) == 1)
  }

  @Test("Clients that have left make room")
  func left() {
    var line = line(clientLimit: 4, running: 4)
    _ = add(["g0", "g1", "g2", "g3"], for: greedy, to: &line)
    let removed = line.removeUnwanted(of: greedy, most: 3) { $0 == "g1" || $0 == "g3" }
    #expect(removed == ["g1"])
    #expect(add(["g4", "g5"], for: greedy, to: &line) == 1)
    #expect(next(5, of: &line) == ["g0", "g2", "g3", "g4"])
    for _ in 0..<4 { line.finish(greedy) }
    #expect(line.count == 0)
  }

  @Test("Whatever comes and goes, nothing is lost, doubled or taken out of its client's order")
  func random() {
    var random = SplitMix64(seed: seed)
    var line = line(50, clientLimit: 20, running: 2)
    var waiting: [ClientAddress: [String]] = [:]
    var running: [ClientAddress] = []
    func count(of client: ClientAddress) -> Int { running.count { $0 == client } }
    for number in 0..<5_000 {
      let client = ClientAddress(number: UInt8.random(in: 1...5, using: &random))
      let all = waiting.values.reduce(0) { $0 + $1.count } + running.count
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1:
        let hasRoom = (waiting[client]?.count ?? 0) + count(of: client) < 20 && all < 50
        let isTaken = line.append("\(number)", for: client)
        #expect(isTaken == hasRoom, "seed \(seed)")
        if isTaken { waiting[client, default: []].append("\(number)") }
      case 2:
        let canRun = waiting.contains { !$0.value.isEmpty && count(of: $0.key) < 2 }
        let next = line.next()
        #expect((next != nil) == canRun, "seed \(seed)")
        guard let next else { continue }
        let oldest = waiting[next.client]?.removeFirst()
        #expect(oldest == next.item, "seed \(seed)")
        running.append(next.client)
      default:
        if let client = running.popLast() { line.finish(client) }
      }
      #expect(line.count == waiting.values.reduce(0) { $0 + $1.count } + running.count, "seed \(seed)")
    }
  }
}
