import Foundation
import Journal
import KeyValueModel
import ModelStore

/// What the start of one store took, in this process.
struct RecoveryMeasurement {
  var objects = 0
  var records = 0
  var seconds = 0.0
  /// What the process had before, and has now.
  var residentBytesBefore = 0
  var residentBytes = 0
  /// The most that it ever had.
  var peakBytes = 0

  /// Reads the store of a directory.
  init(store: String) throws {
    residentBytesBefore = try Self.residentBytes()
    let begin = ContinuousClock.now
    let journal = try SQLiteJournal(directory: store, durability: .synced) {
      JournalIdentity(epoch: "bench", schema: "")
    }
    let schema = try Schema(yaml: journal.identity.schema)
    var last = RecoveryProgress()
    let outcome = try Recovery(journal, schema: schema, limits: StoreLimits()) { last = $0 }.run()
    seconds = (ContinuousClock.now - begin) / .seconds(1)
    objects = outcome.model.state.count
    records = last.records
    residentBytes = try Self.residentBytes()
    peakBytes = try Self.peakBytes()
    withExtendedLifetime(outcome) {}
  }

  /// What another process has measured.
  init(json text: String) throws {
    let value = try Value(json: text)
    guard case .object(let members) = value else { throw FanoutError("no measurement: \(text)") }
    func number(_ name: String) -> Double {
      switch members[name] {
      case .integer(let whole): Double(whole)
      case .number(let number): number
      default: 0
      }
    }
    objects = Int(number("objects"))
    records = Int(number("records"))
    seconds = number("seconds")
    residentBytesBefore = Int(number("before"))
    residentBytes = Int(number("after"))
    peakBytes = Int(number("peak"))
  }

  var json: String {
    Value.object([
      "objects": .integer(Int64(objects)), "records": .integer(Int64(records)), "seconds": .number(seconds),
      "before": .integer(Int64(residentBytesBefore)), "after": .integer(Int64(residentBytes)),
      "peak": .integer(Int64(peakBytes)),
    ]).json
  }

  private static func residentBytes() throws -> Int {
    try ProcessFigures(pid: Int(ProcessInfo.processInfo.processIdentifier)).residentBytes
  }

  private static func peakBytes() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
    let kilobytes = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Int($0) }
    return (kilobytes ?? 0) * 1024
  }
}
