import KeyValueModel

/// The figures of `keyway bench queries`.
struct QueryBenchmarkReport {
  /// What one commit costs among so many rows or queries.
  struct Figure {
    let count: Int
    let nanoseconds: Double
    /// What it costs where nobody watches anything.
    let bareNanoseconds: Double

    var json: Value {
      .object([
        "count": .integer(Int64(count)), "nanoseconds": .number(nanoseconds.rounded()),
        "bareNanoseconds": .number(bareNanoseconds.rounded()),
      ])
    }
  }

  /// How what one commit costs grows.
  struct Growth {
    let subject: String
    let unit: String
    let figures: [Figure]

    /// The cost at the largest number in terms of that at the smallest.
    var ratio: Double {
      let ordered = figures.sorted { $0.count < $1.count }
      guard let first = ordered.first, let last = ordered.last else { return 1 }
      return last.nanoseconds / first.nanoseconds
    }
  }

  var growth: [Growth] = []

  /// The figures as lines to be read, in microseconds.
  var text: String {
    growth.map { growth in
      let figures = growth.figures.map { figure in
        "\(figure.count) \(growth.unit) \(Self.microseconds(figure.nanoseconds)) µs "
          + "(bare commit \(Self.microseconds(figure.bareNanoseconds)) µs)"
      }
      return "\(growth.subject): \(figures.joined(separator: ", ")); ratio \(Self.hundredths(growth.ratio))"
    }
    .joined(separator: "\n")
  }

  /// The figures as one JSON object.
  var json: String {
    let growth = growth.map { growth in
      Value.object([
        "subject": .string(growth.subject), "unit": .string(growth.unit),
        "figures": .array(growth.figures.map(\.json)), "ratio": .number(Self.hundredths(growth.ratio)),
      ])
    }
    return Value.object(["growth": .array(growth)]).json
  }

  private static func microseconds(_ nanoseconds: Double) -> Double { hundredths(nanoseconds / 1000) }

  private static func hundredths(_ number: Double) -> Double { (number * 100).rounded() / 100 }
}
