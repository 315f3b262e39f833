import KeyValueModel

/// The order of values in the specification, for the values that occur in the oracle's schemas.
enum NaiveOrder {
  /// Returns less than 0, 0 or more than 0. Null comes first, then numbers, then strings by their bytes or the moments
  /// that they name.
  static func compare(_ left: Value, _ right: Value, asDates: Bool) -> Int {
    let kinds = (kind(left), kind(right))
    guard kinds.0 == kinds.1 else { return kinds.0 - kinds.1 }
    switch kinds.0 {
    case 1: return sign(number(left), number(right))
    case 2:
      if asDates, let left = moment(left), let right = moment(right) { return left - right }
      let (left, right) = (Array(text(left).utf8), Array(text(right).utf8))
      return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
    default: return 0
    }
  }

  private static func kind(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .integer, .number: 1
    case .string, .reference: 2
    default: preconditionFailure("the oracle does not sort by \(value.json)")
    }
  }

  private static func sign(_ left: Double, _ right: Double) -> Int { left < right ? -1 : left > right ? 1 : 0 }

  private static func number(_ value: Value) -> Double {
    switch value {
    case .integer(let number): Double(number)
    case .number(let number): number
    default: 0
    }
  }

  private static func text(_ value: Value) -> String {
    switch value {
    case .string(let text): text
    case .reference(let reference): reference.text
    default: ""
    }
  }

  private static func moment(_ value: Value) -> Int? {
    OracleFold.dates.first { $0.text == text(value) }?.moment
  }
}
