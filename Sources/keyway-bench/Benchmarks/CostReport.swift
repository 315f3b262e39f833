import ArgumentParser
import KeyValueModel
import Support
import TestKit

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

/// How `bench model` and `bench queries` measure.
enum CostMeasurement {
  /// The best of so many rounds, at least two.
  static func best(of rounds: Int, _ measure: () throws -> Double) throws -> Double {
    var best = try measure()
    for _ in 1..<max(rounds, 2) { best = min(best, try measure()) }
    return best
  }

  /// Nanoseconds for each of so many changes. `change` gives how many notifications came of one change; throws where
  /// they are not as many as wanted altogether, since then the figure means nothing.
  static func nanoseconds(
    each changes: Int, notifications wanted: Int, _ change: (Int) throws -> Int
  ) throws -> Double {
    var heard = 0
    let start = SystemClock.now()
    for number in 0..<changes { heard += try change(number) }
    let elapsed = SystemClock.now() - start
    guard heard == wanted else { throw LoopbackError("there were \(heard) notifications instead of \(wanted)") }
    return Double(elapsed) / Double(changes)
  }

  /// Transactions of at most 10,000 operations that make so many objects.
  static func creations(of count: Int, _ creation: (Int) -> Operation) -> [Transaction] {
    stride(from: 0, to: count, by: 10_000).map { start in
      Transaction((start..<min(start + 10_000, count)).map(creation))
    }
  }
}

/// Numbers as an option takes them, separated by commas.
struct NumberList: ExpressibleByArgument, CustomStringConvertible {
  let numbers: [Int]

  init(_ numbers: Int...) { self.numbers = numbers }

  init?(argument: String) {
    numbers = argument.split(separator: ",", omittingEmptySubsequences: false).compactMap { Int($0) }
    guard numbers.count == argument.split(separator: ",", omittingEmptySubsequences: false).count else { return nil }
  }

  var description: String { numbers.map(String.init).joined(separator: ",") }

  var defaultValueDescription: String { description }

  /// Throws where a number is out of the range of the option with this name.
  func check(_ name: String, _ range: ClosedRange<Int>) throws {
    try ReportOptions.check(numbers.map { ("each number of \(name)", $0, range) })
  }
}

extension Reference {
  /// The object of an entity whose id is this number.
  static func numbered(_ entity: String, _ number: Int) throws -> Reference {
    guard let reference = Reference(entity: entity, id: String(number)) else {
      throw LoopbackError("\(entity)/\(number) is no reference")
    }
    return reference
  }
}
