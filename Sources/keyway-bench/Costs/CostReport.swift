import KeyValueModel

/// What one change costs in this process, and how that grows: the figures of `bench model` and `bench queries`.
struct CostReport: BenchmarkReport {
  /// What one change costs among so many.
  struct Cost {
    let count: Int
    let nanoseconds: Double
    /// What the same change costs where nothing is observed; nil where that is not measured.
    var bareNanoseconds: Double?

    var json: Value {
      var object: JSONObject = ["count": .count(count), "nanoseconds": .number(nanoseconds.rounded())]
      if let bareNanoseconds {
        object["bareNanoseconds"] = .number(bareNanoseconds.rounded())
      } else {
        object["perSecond"] = .count(Int(1e9 / nanoseconds))
      }
      return .object(object)
    }

    func text(_ unit: String) -> String {
      guard let bareNanoseconds else { return "\(count) \(unit) \(Int(nanoseconds.rounded())) ns" }
      let (all, bare) = (CostReport.hundredths(nanoseconds / 1000), CostReport.hundredths(bareNanoseconds / 1000))
      return "\(count) \(unit) \(all) µs (bare commit \(bare) µs)"
    }
  }

  /// How what one change costs grows.
  struct Growth {
    let subject: String
    let unit: String
    let figures: [Cost]

    /// The cost at the largest number in terms of that at the smallest.
    var ratio: Double {
      let ordered = figures.sorted { $0.count < $1.count }
      guard let first = ordered.first, let last = ordered.last else { return 1 }
      return CostReport.hundredths(last.nanoseconds / first.nanoseconds)
    }

    var json: Value {
      .object([
        "subject": .string(subject), "unit": .string(unit), "figures": .array(figures.map(\.json)),
        "ratio": .number(ratio),
      ])
    }

    var text: String { "\(subject): \(figures.map { $0.text(unit) }.joined(separator: ", ")); ratio \(ratio)" }
  }

  /// Settings of an attribute with one observer, among so many objects.
  var settings: [Cost] = []
  var growth: [Growth] = []

  var text: String {
    let lines = settings.map { cost in
      "set with one observer, \(cost.count) objects: \(Int(cost.nanoseconds.rounded())) ns, "
        + "\(Int(1e9 / cost.nanoseconds)) a second"
    }
    return (lines + growth.map(\.text)).joined(separator: "\n")
  }

  var json: Value {
    var object: JSONObject = settings.isEmpty ? [:] : ["settings": .array(settings.map(\.json))]
    object["growth"] = .array(growth.map(\.json))
    return .object(object)
  }

  private static func hundredths(_ number: Double) -> Double { (number * 100).rounded() / 100 }
}
