import KeyValueModel

/// The figures of `keyway-bench recovery`.
struct RecoveryReport: BenchmarkReport {
  /// What the start of one store took.
  struct Figures {
    let measurement: RecoveryMeasurement
    let snapshotBytes: Int
    let journalBytes: Int

    /// What the process has because of the store.
    var memory: Int { measurement.residentBytes - measurement.residentBytesBefore }

    /// `1000 objects from a snapshot: 0.5 s, 2000 objects/s; …`.
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
