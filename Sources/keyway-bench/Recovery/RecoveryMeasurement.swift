import Foundation
import HTTPServer
import KeyValueModel
import Store
import TestKit

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
    let begin = MonotonicClock.now()
    let journal = try SQLiteJournal(directory: store, durability: .synced) {
      JournalIdentity(epoch: "bench", schema: "")
    }
    let schema = try Schema(yaml: journal.identity.schema)
    var last = RecoveryProgress()
    let outcome = try Recovery(journal, schema: schema, limits: StoreLimits()) { last = $0 }.run()
    SystemAllocator.giveBack()
    seconds = MonotonicClock.seconds(since: begin)
    objects = outcome.model.state.count
    records = last.records
    residentBytes = try Self.residentBytes()
    peakBytes = try Self.peakBytes()
    withExtendedLifetime(outcome) {}
  }

  /// What another process has measured.
  init(json text: String) throws {
    let value = try Value(json: text)
    objects = value["objects"].whole ?? 0
    records = value["records"].whole ?? 0
    seconds = value["seconds"].double ?? 0
    residentBytesBefore = value["before"].whole ?? 0
    residentBytes = value["after"].whole ?? 0
    peakBytes = value["peak"].whole ?? 0
  }

  /// The figures, for the process that has asked for them.
  var json: JSONObject {
    [
      "objects": .count(objects), "records": .count(records), "seconds": .number(seconds),
      "before": .count(residentBytesBefore), "after": .count(residentBytes), "peak": .count(peakBytes),
    ]
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
