import Testing

@testable import keyway_bench

@Suite("The comparison of answers with the journal")
struct RoundCheckTests {
  /// Checks a record after revision 10, at which `a` was 1.
  private func check(_ record: RoundRecord, _ texts: [String], done: Set<Int> = [1]) throws -> RoundCheck {
    var done = done
    return RoundCheck(
      of: record, lines: try texts.map { text throws(BrokenPromise) in try JournalLine(text) }, after: 10,
      registers: ["a": 1], done: &done)
  }

  private func line(_ revision: Int, _ operation: String) -> String {
    #"{"revision":\#(revision),"time":"2026-01-01T00:00:00.000Z","operations":[\#(operation)]}"#
  }

  private func set(_ value: Int) -> String {
    #"{"op":"set","object":"Register/a","keyPath":"value","value":\#(value)}"#
  }

  private let deletion = #"{"op":"delete","object":"Register/a"}"#

  private func acknowledged(_ revision: Int, _ value: Int?) -> RoundRecord.Acknowledged {
    RoundRecord.Acknowledged(revision: revision, leaves: ["a": value], text: "write")
  }

  private func open(_ value: Int?) -> RoundRecord.Open {
    let part = RegisterRequest.Part(register: "a", condition: .always, leaves: value)
    return RoundRecord.Open(invoked: 0, parts: [part], value: value, text: "write")
  }

  private func judgement(
    _ revision: Int, floor: Int = 0, _ condition: RegisterOperation.Condition, refused: Int? = nil
  ) -> RoundRecord.Judgement {
    RoundRecord.Judgement(
      text: "request", register: "a", revision: revision, floor: floor, condition: condition, refusedValue: refused)
  }

  @Test("Acknowledged writes exist at their revisions, and no others")
  func acknowledging() throws {
    var record = RoundRecord()
    record.acknowledged = [acknowledged(11, 2), acknowledged(12, nil)]
    let good = try check(record, [line(11, set(2)), line(12, deletion)])
    #expect(good.problems.isEmpty && good.registers.isEmpty && good.registers(at: 11) == ["a": 2])
    #expect(try check(record, [line(11, set(2))]).problems.count == 1)
    #expect(try check(record, [line(11, set(3)), line(12, deletion)]).problems.count == 1)
    #expect(try check(record, [line(11, set(2)), line(13, deletion)]).problems.count == 1)
    #expect(try check(record, [line(11, set(2)), line(12, deletion), line(13, set(9))]).problems.count == 1)
    // A value that an earlier round has set already.
    #expect(try check(record, [line(11, set(2)), line(12, deletion)], done: [1, 2]).problems.count == 1)
    record.acknowledged.append(acknowledged(11, 2))
    #expect(try check(record, [line(11, set(2)), line(12, deletion)]).problems.count == 1)
  }

  @Test("A write without an answer is done once or not at all")
  func leavingOpen() throws {
    let record = RoundRecord(carrying: [open(2), open(nil)])
    let none = try check(record, [])
    #expect(none.problems.isEmpty && none.stillOpen.count == 2)
    let one = try check(record, [line(11, set(2))])
    #expect(one.problems.isEmpty && one.found.map(\.value) == [2] && one.stillOpen.map(\.value) == [nil])
    #expect(!(try check(record, [line(11, set(2)), line(12, set(2))]).problems.isEmpty))
    #expect(!(try check(record, [line(11, deletion), line(12, deletion)]).problems.isEmpty))
  }

  @Test("A read of a state after the last of a round is for the next to judge")
  func judgingLater() throws {
    var record = RoundRecord()
    record.judgements = [judgement(11, .isState(2))]
    let first = try check(record, [])
    #expect(first.problems.isEmpty && first.later == record.judgements)
    #expect(try check(RoundRecord(carrying: [open(2)], first.later), [line(11, set(2))]).problems.isEmpty)
    #expect(try check(RoundRecord(carrying: [open(3)], first.later), [line(11, set(3))]).problems.count == 1)
  }

  @Test("Reads and refusals are right at their revision, and know what was known")
  func judging() throws {
    var record = RoundRecord()
    record.acknowledged = [acknowledged(11, 2)]
    let lines = [line(11, set(2))]
    func problems(_ judgement: RoundRecord.Judgement) throws -> Int {
      record.judgements = [judgement]
      return try check(record, lines).problems.count
    }
    #expect(try problems(judgement(10, .isState(1))) == 0)
    #expect(try problems(judgement(11, .isState(2))) == 0)
    #expect(try problems(judgement(11, .isState(1))) == 1)
    #expect(try problems(judgement(10, floor: 11, .isState(1))) == 1)
    #expect(try problems(judgement(11, .isNot(1))) == 0 && problems(judgement(10, .isNot(1))) == 1)
    // Refused although it was done before.
    #expect(try problems(judgement(11, .isNot(1), refused: 2)) == 1)
    // A comparison of an earlier round.
    #expect(try problems(judgement(4, .isState(7))) == 0)
  }
}
