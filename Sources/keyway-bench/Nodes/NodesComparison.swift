import Glibc
import KeyValueModel
import TestKit

/// The comparison of nodes with each other, and of streams with nodes, after everything in a round has been
/// acknowledged.
struct NodesComparison {
  var doors: [NodeDoor]
  var ledger: RegisterLedger
  /// The limits of the round: its revisions are those after `start` up to `end`.
  var start: Cursor
  var end: Cursor

  private var promises: PromiseLedger { ledger.promises }

  /// Sends a GET to a node, and returns the response in a state at least as new as the end.
  private func get(_ target: String, from door: NodeDoor) throws -> WireResponse {
    let deadline = Deadline(seconds: RegisterClient.patienceSeconds)
    while true {
      let mark = door.mark()
      let newest = ledger.newest ?? end
      let response = try WireClient(port: door.port).send(
        "GET", target, ["Keyway-Cursor": newest.description])
      if let problem = door.take(response, since: mark) { promises.violation("GET \(target): \(problem)") }
      if response.status == 200 { return response }
      guard response.status == 503, !deadline.hasPassed else {
        throw LoopbackError(.unexpectedStatus(response.status), "node \(door.node), \(target): \(response.text)")
      }
      usleep(20_000)
    }
  }

  /// Checks that all nodes have the same objects, byte for byte. Returns the registers, and notes that they were read.
  func objects() throws -> [String: Int] {
    let deadline = Deadline(seconds: RegisterClient.patienceSeconds)
    while true {
      let moment = ledger.moment()
      let responses = try doors.map { try get("/v1/objects", from: $0) }
      let cursors = Set(responses.compactMap { $0["Keyway-Cursor"] })
      // A write with an unknown outcome may have been done between two of the responses.
      guard cursors.count == 1 || deadline.hasPassed else { continue }
      let texts = Set(responses.map(\.text))
      if cursors.count > 1 || texts.count > 1 {
        let states = responses.map { "\($0["Keyway-Cursor"] ?? "?") \($0.text.prefix(2000))" }
        promises.violation("the nodes have different objects: \(states.joined(separator: "; "))")
      }
      guard let first = responses.first else { return [:] }
      return registers(in: first, at: moment)
    }
  }

  private func registers(in response: WireResponse, at moment: RegisterLedger.Moment) -> [String: Int] {
    var registers: [String: Int] = [:]
    for object in response.json["objects"].items {
      guard let name = object["@ref"].text, name.hasPrefix("Register/") else { continue }
      registers[String(name.dropFirst("Register/".count))] = object["value"].whole
    }
    for name in RegisterSchema.steady + RegisterSchema.fleeting + registers.keys.filter({ $0.hasPrefix("w") }) {
      ledger.read(name, registers[name], "GET /v1/objects, \(name)", at: moment, response)
    }
    return registers
  }

  /// Checks that all nodes have the same journal, byte for byte. Returns its lines of the round.
  func journal() throws -> [JournalLine] {
    let journals = try doors.map { try journal(of: $0) }
    for (door, journal) in zip(doors, journals) where journal != journals[0] {
      let difference = zip(journal, journals[0]).first { $0.0 != $0.1 }
      promises.violation(
        "node \(door.node) has another journal than node \(doors[0].node), with \(journal.count) lines and not "
          + "\(journals[0].count): \(difference.map { "\($0.0) and \($0.1)" } ?? "one ends before the other")")
    }
    return try journals[0].map { line throws(BrokenPromise) in try JournalLine(line) }
  }

  private func journal(of door: NodeDoor) throws -> [String] {
    var lines: [String] = []
    var cursor = start
    while cursor.revision < end.revision {
      let response = try get("/v1/journal?since=\(cursor)&limit=10000", from: door)
      guard let next = Cursor(of: response), next.revision > cursor.revision else {
        throw LoopbackError("the journal of node \(door.node) ends at \(cursor), before \(end)")
      }
      lines += response.text.split(separator: "\n").map(String.init)
      cursor = next
    }
    return Array(lines.prefix(end.revision - start.revision))
  }

  // MARK: Streams

  /// Checks that every stream has sent the same as an unbroken stream of each node, for the same revisions, and that
  /// this agrees with the journal.
  func check(streams: [MovingReader], lines: [JournalLine], _ check: RoundCheck) throws {
    guard let writer = lines.last.flatMap({ try? Value(json: $0.text) })?["writer"].text, !streams.isEmpty else {
      return
    }
    for subscription in MovingReader.Subscription.allCases {
      guard promises.isFaultless else { return }
      let replays = try doors.map { try replay(subscription, of: $0, upTo: writer) }
      for (door, replay) in zip(doors, replays) where door.node > 0 {
        compare(replay, with: replays[0], "the \(subscription) stream replayed by node \(door.node)")
      }
      for stream in streams where stream.subscription == subscription {
        compare(stream.told, with: replays[0], stream.name)
      }
      if let problem = Self.difference(of: replays[0], subscription, lines: lines, check) {
        promises.violation("the \(subscription) stream replayed by node \(doors[0].node): \(problem)")
      }
    }
  }

  private func replay(
    _ subscription: MovingReader.Subscription, of door: NodeDoor, upTo writer: String
  ) throws -> [MovingReader.Told] {
    let reader = MovingReader(
      subscription, at: door.node, of: doors, since: start, upTo: writer, seed: 0, promises: promises)
    reader.start()
    guard Deadline(seconds: RegisterClient.patienceSeconds).awaits(pauseMicroseconds: 1000, { !reader.isRunning })
    else { throw LoopbackError(.timedOut, "\(reader.name), replayed, up to \(end)") }
    return reader.told
  }

  private func compare(_ told: [MovingReader.Told], with expected: [MovingReader.Told], _ name: String) {
    guard told != expected else { return }
    let index = zip(told, expected).prefix { $0.0 == $0.1 }.count
    func text(_ told: [MovingReader.Told]) -> String { told.indices.contains(index) ? told[index].text : "nothing" }
    promises.violation(
      "\(name) sent\n\(text(told))\nwhere an unbroken one of node \(doors[0].node) has\n\(text(expected))")
  }

  /// Returns a difference between a stream and the journal; nil if there is none.
  private static func difference(
    of told: [MovingReader.Told], _ subscription: MovingReader.Subscription, lines: [JournalLine], _ check: RoundCheck
  ) -> String? {
    let expected = lines.filter { subscription != .register || $0.leaves["s0"] != nil }
    guard told.map(\.revision) == expected.map(\.revision) else {
      let missing = Set(expected.map(\.revision)).symmetricDifference(told.map(\.revision)).sorted()
      return "other revisions than the journal: \(missing.prefix(5))"
    }
    for (line, event) in zip(expected, told) {
      let data = event.text.split(separator: "\n").first { $0.hasPrefix("data: ") }?.dropFirst(6) ?? ""
      let change = ((try? Value(json: String(data))) ?? .null)["changes"].items.last ?? .null
      switch subscription {
      case .journal where data != line.text: return "\(data), where the journal has \(line.text)"
      case .register where .some(change["new"].whole) != line.leaves["s0"]: return "\(data), after \(line.text)"
      case .total where change["new"].whole != check.registers(at: line.revision)?.values.reduce(0, +):
        return "\(data), after \(line.text)"
      default: continue
      }
    }
    return nil
  }
}
