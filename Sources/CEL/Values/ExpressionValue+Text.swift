extension ExpressionValue {
  /// As messages show it: short, and never the whole of a long text.
  package var debugText: String {
    switch self {
    case .null: "null"
    case .bool(let flag): String(flag)
    case .int(let number): String(number)
    case .uint(let number): "\(number)u"
    case .double(let number): ExpressionValue.text(of: number)
    case .string(let text): "'\(text.prefix(40))'"
    case .timestamp(let timestamp): timestamp.description
    case .duration(let duration): duration.description
    case .type(let name): name
    case .bytes, .list, .lazyList, .map, .object: "a \(typeName)"
    }
  }

  /// A double as `string(double)` gives it: as few digits as it takes, without an exponent from 1e-7 to 1e21.
  static func text(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number < 0 ? "-Infinity" : "Infinity" }
    if number == 0 { return number.sign == .minus ? "-0" : "0" }
    let parts = ShortestDecimal(number)
    let digits = String(parts.mantissa.magnitude)
    let sign = parts.mantissa < 0 ? "-" : ""
    let point = digits.utf8.count + parts.exponent
    if parts.exponent >= 0, point <= 21 { return sign + digits + String(repeating: "0", count: parts.exponent) }
    if point > 0, point <= 21 { return "\(sign)\(digits.prefix(point)).\(digits.dropFirst(point))" }
    if point <= 0, point > -6 { return "\(sign)0." + String(repeating: "0", count: -point) + digits }
    let rest = digits.dropFirst()
    return "\(sign)\(digits.prefix(1))\(rest.isEmpty ? "" : ".")\(rest)e\(point > 0 ? "+" : "-")\(abs(point - 1))"
  }
}
