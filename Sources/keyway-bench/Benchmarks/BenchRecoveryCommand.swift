import ArgumentParser
import Foundation
import HTTPServer
import KeyValueModel
import Store
import Support
import TestKit

/// `keyway-bench recovery`: the startup time of a store, and the size of objects and records in memory and on disk.
struct BenchRecoveryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recovery",
    abstract: "Measures the start of a store with many objects, and of one with a long journal.",
    discussion: """
      Writes two stores: one whose objects are in a snapshot, and one with a few objects and a long journal, in which
      each record sets a key. A process of its own then reads each, as a server does when it starts, and measures its
      memory.
      """)

  @Option(help: "The number of objects in the first store.")
  var objects = 1_000_000

  @Option(help: "The number of records in the second store.")
  var records = 1_000_000

  @Option(help: "The directory in which the stores are created, and removed again.")
  var directory = "."

  @Option(help: .hidden)
  var measure: String?

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([("--objects", objects, 1...20_000_000), ("--records", records, 1...100_000_000)])
  }

  func run() throws {
    if let measure {
      print(Value.object(try RecoveryMeasurement(store: measure).json).json)
      return
    }
    try report.show(try RecoveryBenchmark(objects: objects, records: records, directory: directory).run())
  }
}

/// Writes stores, and measures how a process of its own reads each.
private struct RecoveryBenchmark {
  let objects: Int
  let records: Int
  let directory: String

  private static let schema = """
    entities:
      Item:
        keys:
          name:   { type: string }
          city:   { type: string }
          price:  { type: number }
          count:  { type: integer }
          parent: { toOne: Item }

    """
  /// The number of objects in the store with the long journal.
  private static let fewObjects = 1000
  private static let batch = 1000

  /// Measures both stores.
  func run() throws -> RecoveryReport {
    let folder = try ScratchDirectory(in: directory)
    return RecoveryReport(
      snapshot: try measure(folder.file("snapshot"), objects: objects, records: 0),
      journal: try measure(folder.file("journal"), objects: min(objects, Self.fewObjects), records: records))
  }

  private func measure(_ store: String, objects: Int, records: Int) throws -> RecoveryReport.Figures {
    try write(store, objects: objects, records: records)
    let snapshotBytes = try Self.bytes(of: "\(store)/snapshots")
    let journalBytes = try Self.bytes(of: store)
    let reader = try ChildProcess(
      KeywayServer.thisProgram, ["recovery", "--measure", store], output: .errorsShown)
    guard try reader.exitStatus(within: 86_400) == 0 else { throw LoopbackError("the store could not be read") }
    let measurement = try RecoveryMeasurement(json: reader.output)
    guard measurement.objects == objects, measurement.records == records else {
      throw LoopbackError("the store was read with \(measurement.objects) objects and \(measurement.records) records")
    }
    return .init(measurement: measurement, snapshotBytes: snapshotBytes, journalBytes: journalBytes)
  }

  /// Creates a store whose objects are in a snapshot, followed by a journal of records.
  private func write(_ store: String, objects: Int, records: Int) throws {
    let journal = try SQLiteJournal(directory: store, durability: .relaxed(milliseconds: 1000)) {
      JournalIdentity(epoch: "bench", schema: Self.schema)
    }
    defer { journal.close() }
    var model = Model(schema: try Schema(yaml: Self.schema))
    for first in stride(from: 0, to: objects, by: Self.batch) {
      let numbers = first..<min(first + Self.batch, objects)
      _ = try model.commit(Transaction(numbers.map { .create(try .numbered("Item", $0), values($0)) }))
    }
    var encoder = StateEncoder(model.state)
    try journal.rebase(to: 1, schema: Self.schema, milliseconds: 0) { encoder.nextBlock() }
    var last: UInt64 = 1
    while last < UInt64(records) + 1 {
      let numbers = last + 1...min(last + UInt64(Self.batch), UInt64(records) + 1)
      let batch = try numbers.map { revision in
        var body: [UInt8] = []
        let reference = try Reference.numbered("Item", Int(revision) % objects)
        Transaction([.set(reference, keyPath: "price", .number(Double(revision) / 4))]).appendJournalText(to: &body)
        return JournalRecord(revision: revision, milliseconds: Int64(Date().timeIntervalSince1970 * 1000), body: body)
      }
      try journal.append(batch, after: last)
      journal.maintain()
      last = numbers.upperBound
    }
  }

  private func values(_ number: Int) -> JSONObject {
    [
      "name": .string("Item number \(number)"), "city": .string(["Lagos", "Lima", "Lyon"][number % 3]),
      "price": .number(Double(number) / 4), "count": .integer(Int64(number)),
      "parent": number == 0 ? .null : .string("Item/\(number / 2)"),
    ]
  }

  private static func bytes(of folder: String) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: folder).reduce(0) { sum, name in
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")
      return sum + (attributes[.type] as? FileAttributeType == .typeRegular ? attributes[.size] as? Int ?? 0 : 0)
    }
  }
}

/// The measurements of the start of one store, in this process.
private struct RecoveryMeasurement {
  var objects = 0
  var records = 0
  var seconds = 0.0
  /// The resident memory of the process before and after, in bytes.
  var residentBytesBefore = 0
  var residentBytes = 0
  /// The peak resident memory of the process, in bytes.
  var peakBytes = 0

  /// Reads the store in a directory, and measures that.
  init(store: String) throws {
    residentBytesBefore = try Self.residentBytes()
    let begin = SystemClock.now()
    let journal = try SQLiteJournal(directory: store, durability: .synced) {
      JournalIdentity(epoch: "bench", schema: "")
    }
    let schema = try Schema(yaml: journal.identity.schema)
    var last = RecoveryProgress()
    let outcome = try Recovery(journal, schema: schema, limits: StoreLimits()) { last = $0 }.run()
    SystemAllocator.releaseFreeMemory()
    seconds = SystemClock.seconds(since: begin)
    objects = outcome.model.state.count
    records = last.records
    residentBytes = try Self.residentBytes()
    peakBytes = try Self.peakBytes()
    withExtendedLifetime(outcome) {}
  }

  /// Creates the measurements of another process from its output.
  init(json text: String) throws {
    let value = try Value(json: text)
    objects = value["objects"].whole ?? 0
    records = value["records"].whole ?? 0
    seconds = value["seconds"].double ?? 0
    residentBytesBefore = value["before"].whole ?? 0
    residentBytes = value["after"].whole ?? 0
    peakBytes = value["peak"].whole ?? 0
  }

  /// The figures, for the parent process.
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

/// The figures of `keyway-bench recovery`.
private struct RecoveryReport: BenchmarkReport {
  /// The figures of the start of one store.
  struct Figures {
    let measurement: RecoveryMeasurement
    let snapshotBytes: Int
    let journalBytes: Int

    /// The memory of the process that is due to the store, in bytes.
    var memory: Int { measurement.residentBytes - measurement.residentBytesBefore }

    /// Returns a line such as `1000 objects from a snapshot: 0.5 s, 2000 objects/s; …`.
    func text(_ count: Int, _ unit: String, _ way: String, _ bytes: String) -> String {
      let seconds = (measurement.seconds * 100).rounded() / 100
      return
        "\(count) \(unit)s \(way): \(seconds) s, \(Int(Double(count) / max(measurement.seconds, 1e-9))) \(unit)s/s; "
        + "\(bytes); \(measurement.residentBytes >> 20) MiB resident, \(measurement.peakBytes >> 20) MiB at most"
    }

    var json: Value {
      var members = measurement.json
      members["snapshotBytes"] = .count(snapshotBytes)
      members["journalBytes"] = .count(journalBytes)
      return .object(members)
    }
  }

  let snapshot: Figures
  let journal: Figures

  var text: String {
    let (objects, records) = (max(snapshot.measurement.objects, 1), max(journal.measurement.records, 1))
    let first = snapshot.text(
      objects, "object", "from a snapshot",
      "\(snapshot.memory / objects) bytes an object in memory, \(snapshot.snapshotBytes / objects) on disk")
    let second = journal.text(
      records, "record", "carried out again", "\(journal.journalBytes / records) bytes a record on disk")
    return first + "\n" + second
  }

  var json: Value { .object(["snapshot": snapshot.json, "journal": journal.json]) }
}
