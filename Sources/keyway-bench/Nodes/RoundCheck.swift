import KeyValueModel
import TestKit

/// The comparison of the clients' observations in a round with the journal, revision by revision.
struct RoundCheck: Sendable {
  /// The problems that were found.
  private(set) var problems: [String] = []
  /// The writes without an answer that are in the journal.
  private(set) var found: [RoundRecord.Open] = []
  /// The writes without an answer that are not in the journal yet.
  private(set) var stillOpen: [RoundRecord.Open] = []
  /// The reads of states after the last line, which the next round checks: a write with an unknown outcome may have
  /// been done after the last write of the round.
  private(set) var later: [RoundRecord.Judgement] = []
  /// The registers after the last line.
  private(set) var registers: [String: Int]
  /// The registers after each revision, and in the first state.
  private var states: [Int: [String: Int]]
  private let lines: [Int: JournalLine]

  /// Makes the comparison. `lines` are those after the revision `start`, at which the registers were `registers`;
  /// `done` has the values that were ever set, and receives the new ones.
  init(
    of record: RoundRecord, lines: [JournalLine], after start: Int, registers: [String: Int], done: inout Set<Int>
  ) {
    self.registers = registers
    self.lines = Dictionary(lines.map { ($0.revision, $0) }) { first, _ in first }
    states = [start: registers]
    var revisions: [Int: Int] = [:]
    for (index, line) in lines.enumerated() {
      if line.revision != start + 1 + index {
        problems.append("revision \(line.revision) stands where \(start + 1 + index) should")
        return
      }
      for (register, value) in line.leaves { self.registers[register] = value }
      states[line.revision] = self.registers
      for value in Set(line.leaves.values.compactMap { $0 }) {
        if !done.insert(value).inserted { problems.append("\(value) was written a second time: \(line.text)") }
        revisions[value] = line.revision
      }
    }
    let claimed = checkAcknowledged(record.acknowledged)
    checkUnclaimed(record.open, claimed: claimed)
    for judgement in record.judgements {
      if judgement.revision > start + lines.count {
        later.append(judgement)
      } else {
        check(judgement, start: start, revisions: revisions)
      }
    }
  }

  /// Checks that every acknowledged write is in the journal, at its revision. Returns these revisions.
  private mutating func checkAcknowledged(_ acknowledged: [RoundRecord.Acknowledged]) -> Set<Int> {
    var claimed: Set<Int> = []
    for write in acknowledged {
      if !claimed.insert(write.revision).inserted {
        problems.append("revision \(write.revision) was acknowledged twice: \(write.text)")
      }
      guard let line = lines[write.revision] else {
        problems.append("\(write.text) was acknowledged at revision \(write.revision), which is not there")
        continue
      }
      if line.leaves != write.leaves {
        problems.append("\(write.text) was acknowledged at revision \(write.revision), which is \(line.text)")
      }
    }
    return claimed
  }

  /// Checks that every other line belongs to a write without an answer.
  private mutating func checkUnclaimed(_ open: [RoundRecord.Open], claimed: Set<Int>) {
    stillOpen = open
    for line in lines.values.sorted(by: { $0.revision < $1.revision }) where !claimed.contains(line.revision) {
      let index = stillOpen.firstIndex { write in
        Dictionary(uniqueKeysWithValues: write.parts.map { ($0.register, $0.leaves) }) == line.leaves
      }
      if let index {
        found.append(stillOpen.remove(at: index))
      } else {
        problems.append("no client asked for this, or it was refused: \(line.text)")
      }
    }
  }

  /// Checks that a read or refusal is right at the revision that it names, and reflects what clients knew when it was
  /// requested.
  private mutating func check(_ judgement: RoundRecord.Judgement, start: Int, revisions: [Int: Int]) {
    if judgement.revision < judgement.floor {
      problems.append("\(judgement.text): from revision \(judgement.revision), and \(judgement.floor) was known")
    }
    if let value = judgement.refusedValue, let revision = revisions[value], revision <= judgement.revision {
      problems.append("\(judgement.text): refused at revision \(judgement.revision), but done at \(revision)")
    }
    guard judgement.revision >= start else { return }
    guard let state = states[judgement.revision] else {
      problems.append("\(judgement.text): from revision \(judgement.revision), which is not there")
      return
    }
    if !judgement.condition.holds(of: state[judgement.register]) {
      let value = state[judgement.register].map { "\($0)" } ?? "absent"
      problems.append("\(judgement.text): at revision \(judgement.revision) \(judgement.register) is \(value)")
    }
  }

  /// Returns the registers at a revision of the round; nil for any other revision.
  func registers(at revision: Int) -> [String: Int]? { states[revision] }
}

/// The observations of all clients in one round.
struct RoundRecord: Hashable, Sendable {
  /// A write that was acknowledged.
  struct Acknowledged: Hashable, Sendable {
    var revision: Int
    /// The state of each register after it.
    var leaves: [String: Int?]
    var text: String
  }

  /// A write whose outcome is not known: there was no answer, or one that leaves it open.
  struct Open: Hashable, Sendable {
    var invoked: UInt64
    var parts: [RegisterRequest.Part]
    /// The value that it sets; nil for a deletion.
    var value: Int?
    var text: String

    /// The operations that it may have done, or may still do.
    var operations: [(register: String, operation: RegisterOperation)] {
      parts.map {
        (
          $0.register,
          RegisterOperation(invoked: invoked, answered: nil, condition: $0.condition, effect: .becomes($0.leaves))
        )
      }
    }
  }

  /// A read or a refusal, with the revision that it is based on.
  struct Judgement: Hashable, Sendable {
    var text: String
    var register: String
    var revision: Int
    /// The newest revision that any client knew of at the request, and that the answer must reflect; 0 if it need not.
    var floor: Int
    /// The condition that must have held at the revision.
    var condition: RegisterOperation.Condition
    /// The value that a refused write would have set.
    var refusedValue: Int?
  }

  /// The operations on each register, for the linearizability checker.
  var histories: [String: [RegisterOperation]] = [:]
  var acknowledged: [Acknowledged] = []
  var open: [Open] = []
  var judgements: [Judgement] = []

  /// Creates the record of a new round, in which writes with unknown outcomes may still be done, and reads are checked
  /// that showed more than the previous round.
  init(carrying open: [Open] = [], _ judgements: [Judgement] = []) {
    (self.open, self.judgements) = (open, judgements)
    for (register, operation) in open.flatMap(\.operations) { histories[register, default: []].append(operation) }
  }

  /// Adds an operation on a register.
  mutating func note(_ register: String, _ operation: RegisterOperation) {
    histories[register, default: []].append(operation)
  }
}

/// A transaction in the format of `/v1/journal`, and its effect on registers.
struct JournalLine: Hashable, Sendable {
  var revision: Int
  /// The states of the registers that it wrote; nil if absent.
  var leaves: [String: Int?]
  var text: String

  /// Parses a line. Throws if the text is not one, or the transaction does something that no request of the test asks
  /// for.
  init(_ text: String) throws(BrokenPromise) {
    self.text = text
    let json = (try? Value(json: text)) ?? .null
    guard let revision = json["revision"].whole else { throw BrokenPromise("not a line of a journal: \(text)") }
    self.revision = revision
    leaves = [:]
    for operation in json["operations"].items {
      guard let reference = operation["object"].text, reference.hasPrefix("Register/") else { continue }
      let register = String(reference.dropFirst("Register/".count))
      switch operation["op"].text {
      case "put", "create", "patch": leaves[register] = .some(operation["value"]["value"].whole)
      case "set" where operation["keyPath"].text == "value": leaves[register] = .some(operation["value"].whole)
      case "delete": leaves[register] = .some(nil)
      case "require": break
      default: throw BrokenPromise("no request asked for this: \(text)")
      }
    }
  }
}
