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
