import KeyValueModel
import TestKit

/// The comparison of what clients saw in a round with the journal, revision by revision.
struct RoundCheck: Sendable {
  /// What is wrong.
  private(set) var problems: [String] = []
  /// Writes without an answer that the journal has.
  private(set) var found: [RoundRecord.Open] = []
  /// Writes without an answer that it does not have yet.
  private(set) var stillOpen: [RoundRecord.Open] = []
  /// Reads of states after the last line, which are for the next round to judge: a write that was left open may have
  /// been done after the last of the round.
  private(set) var later: [RoundRecord.Judgement] = []
  /// The registers after the last line.
  private(set) var registers: [String: Int]
  /// By revision, the registers that it left; that of the first state too.
  private var states: [Int: [String: Int]]
  private let lines: [Int: JournalLine]

  /// Compares. `lines` are those after the revision `start`, at which the registers were `registers`; `done` has the
  /// values that were ever set, and gets the new ones.
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

  /// Every acknowledged write is there, at its revision. Gives these revisions.
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

  /// Every other line is of a write without an answer.
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

  /// A read or refusal is right at the revision that it names, and knows what clients knew when it was asked for.
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

  /// The registers at a revision of the round; nil for any other.
  func registers(at revision: Int) -> [String: Int]? { states[revision] }
}

/// What all clients saw in one round.
struct RoundRecord: Hashable, Sendable {
  /// A write that was acknowledged.
  struct Acknowledged: Hashable, Sendable {
    var revision: Int
    /// What it left in each register.
    var leaves: [String: Int?]
    var text: String
  }

  /// A write whose outcome is not known: no answer came, or one that leaves it open.
  struct Open: Hashable, Sendable {
    var invoked: UInt64
    var parts: [RegisterRequest.Part]
    /// The value that it sets; nil for a deletion.
    var value: Int?
    var text: String

    /// What it may have done, or may do yet.
    var operations: [(register: String, operation: RegisterOperation)] {
      parts.map {
        (
          $0.register,
          RegisterOperation(invoked: invoked, answered: nil, condition: $0.condition, effect: .becomes($0.leaves))
        )
      }
    }
  }

  /// A read or a refusal, with the revision that it was judged by.
  struct Judgement: Hashable, Sendable {
    var text: String
    var register: String
    var revision: Int
    /// The newest revision that any client knew of when it was asked for, and that it must know too; 0 where it need
    /// not.
    var floor: Int
    /// What has to have held at the revision.
    var condition: RegisterOperation.Condition
    /// The value that a refused write would have set.
    var refusedValue: Int?
  }

  /// By register what happened to it, as the checker of linearizability takes it.
  var histories: [String: [RegisterOperation]] = [:]
  var acknowledged: [Acknowledged] = []
  var open: [Open] = []
  var judgements: [Judgement] = []

  /// The record of a new round, in which writes that were left open may yet be done, and reads are judged that showed
  /// more than the round before.
  init(carrying open: [Open] = [], _ judgements: [Judgement] = []) {
    (self.open, self.judgements) = (open, judgements)
    for (register, operation) in open.flatMap(\.operations) { histories[register, default: []].append(operation) }
  }

  /// Notes what happened to a register.
  mutating func note(_ register: String, _ operation: RegisterOperation) {
    histories[register, default: []].append(operation)
  }
}

/// A transaction as `/v1/journal` gives it, and what it did to registers.
struct JournalLine: Hashable, Sendable {
  var revision: Int
  /// What it left in the registers that it wrote; nil is absence.
  var leaves: [String: Int?]
  var text: String

  /// A line; throws where it is none, or does what no request of the test asks for.
  init(_ text: String) throws(BrokenPromise) {
    self.text = text
    let json = (try? Value(json: text)) ?? .null
    guard let revision = json["revision"].whole else { throw BrokenPromise("no line of a journal: \(text)") }
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
