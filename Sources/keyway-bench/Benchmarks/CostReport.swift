import ArgumentParser
import KeyValueModel
import Support
import TestKit

/// The cost of one change in this process, and its growth: the figures of `keyway-bench model` and `keyway-bench
/// queries`.
struct CostReport: BenchmarkReport {
  /// The cost of one change among a number of objects, rows or queries.
  struct Cost {
    let count: Int
    let nanoseconds: Double
    /// The cost of the same change if nothing is observed; nil if that is not measured.
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

  /// The growth of the cost of one change.
  struct Growth {
    let subject: String
    let unit: String
    let figures: [Cost]

    /// The cost at the largest count as a multiple of that at the smallest.
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

  /// The cost of setting an attribute with one observer, by the number of objects.
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

/// The measuring method of `keyway-bench model` and `keyway-bench queries`.
enum CostMeasurement {
  /// Returns the best of a number of rounds, at least two.
  static func best(of rounds: Int, _ measure: () throws -> Double) throws -> Double {
    var best = try measure()
    for _ in 1..<max(rounds, 2) { best = min(best, try measure()) }
    return best
  }

  /// Returns the nanoseconds for each of a number of changes. `change` returns the number of notifications that one
  /// change caused. Throws if their total is not `wanted`, since then the figure is meaningless.
  static func nanoseconds(
    each changes: Int, notifications wanted: Int, _ change: (Int) throws -> Int
  ) throws -> Double {
    var heard = 0
    let start = SystemClock.now()
    for number in 0..<changes { heard += try change(number) }
    let elapsed = SystemClock.now() - start
    guard heard == wanted else { throw LoopbackError("the changes caused \(heard) notifications instead of \(wanted)") }
    return Double(elapsed) / Double(changes)
  }

  /// Returns transactions of at most 10,000 operations that create `count` objects.
  static func creations(of count: Int, _ creation: (Int) -> Operation) -> [Transaction] {
    stride(from: 0, to: count, by: 10_000).map { start in
      Transaction((start..<min(start + 10_000, count)).map(creation))
    }
  }
}

/// The value of an option that is a list of numbers, separated by commas.
struct NumberList: ExpressibleByArgument, CustomStringConvertible {
  let numbers: [Int]

  init(_ numbers: Int...) { self.numbers = numbers }

  init?(argument: String) {
    numbers = argument.split(separator: ",", omittingEmptySubsequences: false).compactMap { Int($0) }
    guard numbers.count == argument.split(separator: ",", omittingEmptySubsequences: false).count else { return nil }
  }

  var description: String { numbers.map(String.init).joined(separator: ",") }

  var defaultValueDescription: String { description }

  /// Throws if a number is out of the range of the named option.
  func check(_ name: String, _ range: ClosedRange<Int>) throws {
    try ReportOptions.check(numbers.map { ("each number of \(name)", $0, range) })
  }
}

extension Reference {
  /// Returns the object of an entity whose id is a number.
  static func numbered(_ entity: String, _ number: Int) throws -> Reference {
    guard let reference = Reference(entity: entity, id: String(number)) else {
      throw LoopbackError("\(entity)/\(number) is not a reference")
    }
    return reference
  }
}
