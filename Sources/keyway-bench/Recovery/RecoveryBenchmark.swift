import Foundation
import KeyValueModel
import Store
import TestKit

/// Writes stores, and has each read by a process of its own.
struct RecoveryBenchmark {
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
  /// How many objects the store with the long journal has.
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
      throw LoopbackError("the store came back with \(measurement.objects) objects and \(measurement.records) records")
    }
    return .init(measurement: measurement, snapshotBytes: snapshotBytes, journalBytes: journalBytes)
  }

  /// Makes a store whose objects stand in a snapshot, with a journal of records after it.
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
