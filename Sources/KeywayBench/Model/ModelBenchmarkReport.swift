import KeyValueModel

/// The figures of `keyway bench model`.
struct ModelBenchmarkReport {
  /// What one change costs among so many.
  struct Figure {
    let count: Int
    let nanoseconds: Double

    var json: Value {
      .object([
        "count": .integer(Int64(count)), "nanoseconds": .number(nanoseconds.rounded()),
        "perSecond": .integer(Int64(1e9 / nanoseconds)),
      ])
    }
  }

  /// How what one change costs grows with the number of members.
  struct Growth {
    let subject: String
    let figures: [Figure]

    /// The largest collection's cost in terms of the smallest's.
    var ratio: Double {
      let ordered = figures.sorted { $0.count < $1.count }
      guard let first = ordered.first, let last = ordered.last else { return 1 }
      return last.nanoseconds / first.nanoseconds
    }
  }

  var settings: [Figure] = []
  var growth: [Growth] = []

  /// The figures as lines to be read.
  var text: String {
    var lines = settings.map { figure in
      "set with one observer, \(figure.count) objects: \(Self.whole(figure.nanoseconds)) ns, "
        + "\(Int(1e9 / figure.nanoseconds)) a second"
    }
    for growth in growth {
      let figures = growth.figures.map { "\($0.count) members \(Self.whole($0.nanoseconds)) ns" }
      lines.append("\(growth.subject): \(figures.joined(separator: ", ")); ratio \(Self.hundredths(growth.ratio))")
    }
    return lines.joined(separator: "\n")
  }

  /// The figures as one JSON object.
  var json: String {
    let growth = growth.map { growth in
      Value.object([
        "subject": .string(growth.subject), "figures": .array(growth.figures.map(\.json)),
        "ratio": .number((growth.ratio * 100).rounded() / 100),
      ])
    }
    return Value.object(["settings": .array(settings.map(\.json)), "growth": .array(growth)]).json
  }

  private static func whole(_ number: Double) -> Int { Int(number.rounded()) }

  private static func hundredths(_ number: Double) -> Double { (number * 100).rounded() / 100 }
}
