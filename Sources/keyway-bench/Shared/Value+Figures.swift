import KeyValueModel

extension Value {
  /// A count as JSON.
  static func count(_ number: some BinaryInteger) -> Value { .integer(Int64(number)) }

  /// A figure as JSON, to thousandths.
  static func rounded(_ number: Double) -> Value { .number((number * 1000).rounded() / 1000) }
}
