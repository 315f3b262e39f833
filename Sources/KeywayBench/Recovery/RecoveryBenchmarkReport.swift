import KeyValueModel

/// The figures of `keyway bench recovery`.
struct RecoveryBenchmarkReport {
  /// What the start of one store took.
  struct Figures {
    let measurement: RecoveryMeasurement
    let snapshotBytes: Int
    let journalBytes: Int

    /// What the process has because of the store.
    var memory: Int { measurement.residentBytes - measurement.residentBytesBefore }
  }

  var snapshot: Figures?
  var journal: Figures?

  /// The figures as lines to be read.
  var text: String {
    var lines: [String] = []
    if let snapshot {
      let count = snapshot.measurement.objects
      lines.append(
        "\(count) objects from a snapshot: \(Self.hundredths(snapshot.measurement.seconds)) s, "
          + "\(Self.rate(count, snapshot.measurement.seconds)) objects/s; "
          + "\(snapshot.memory / max(count, 1)) bytes an object in memory, \(snapshot.snapshotBytes / max(count, 1)) on disk; "
          + "\(snapshot.measurement.residentBytes >> 20) MiB resident, \(snapshot.measurement.peakBytes >> 20) MiB at most"
      )
    }
    if let journal {
      let count = journal.measurement.records
      lines.append(
        "\(count) records carried out again: \(Self.hundredths(journal.measurement.seconds)) s, "
          + "\(Self.rate(count, journal.measurement.seconds)) records/s; "
          + "\(journal.journalBytes / max(count, 1)) bytes a record on disk; "
          + "\(journal.measurement.residentBytes >> 20) MiB resident, \(journal.measurement.peakBytes >> 20) MiB at most"
      )
    }
    return lines.joined(separator: "\n")
  }

  /// The figures as one JSON object.
  var json: String {
    func object(_ figures: Figures?) -> Value {
      guard let figures, let measured = try? Value(json: figures.measurement.json), case .object(var members) = measured
      else { return .null }
      members["snapshotBytes"] = .integer(Int64(figures.snapshotBytes))
      members["journalBytes"] = .integer(Int64(figures.journalBytes))
      return .object(members)
    }
    return Value.object(["snapshot": object(snapshot), "journal": object(journal)]).json
  }

  private static func hundredths(_ number: Double) -> Double { (number * 100).rounded() / 100 }

  private static func rate(_ count: Int, _ seconds: Double) -> Int { Int(Double(count) / max(seconds, 1e-9)) }
}
