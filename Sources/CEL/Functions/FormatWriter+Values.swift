#if canImport(Glibc)
  import Glibc
#endif

extension FormatWriter {
  /// A value of any type, as `%s` writes it.
  static func plain(
    _ value: ExpressionValue, _ budget: inout EvaluationBudget, depth: Int
  ) throws(EvaluationError) -> String {
    guard depth < ExpressionValue.nestingLimit else { throw .depthLimitExceeded }
    try budget.spend()
    switch value {
    case .string(let text): return text
    case .bytes(let bytes):
      try budget.spend(bytes: bytes.count)
      return String(decoding: bytes, as: UTF8.self)
    case .uint(let number): return String(number)
    case .object(let object): return object.identity
    case .map(let map):
      var parts: [String] = []
      for (key, value) in zip(map.keys, map.values) {
        let text = try plain(key, &budget, depth: depth + 1) + ": " + plain(value, &budget, depth: depth + 1)
        try budget.spend(bytes: text.utf8.count)
        parts.append(text)
      }
      return "{" + parts.sorted().joined(separator: ", ") + "}"
    case .list, .lazyList:
      guard let list = value.asList else { return "[]" }
      var parts: [String] = []
      for index in 0..<list.count {
        let text = try plain(list.element(at: index), &budget, depth: depth + 1)
        try budget.spend(bytes: text.utf8.count)
        parts.append(text)
      }
      return "[" + parts.joined(separator: ", ") + "]"
    default: return value.debugText
    }
  }

  /// `%d`.
  static func decimal(_ value: ExpressionValue) -> String? {
    switch value {
    case .int(let number): String(number)
    case .uint(let number): String(number)
    case .double(let number) where !number.isFinite: ExpressionValue.text(of: number)
    default: nil
    }
  }

  /// `%b` and `%o`.
  static func integer(_ value: ExpressionValue, radix: Int) -> String? {
    switch value {
    case .int(let number): String(number, radix: radix)
    case .uint(let number): String(number, radix: radix)
    case .bool(let flag) where radix == 2: flag ? "1" : "0"
    default: nil
    }
  }

  /// `%x` and `%X`, also of the bytes of texts.
  static func hexadecimal(
    _ value: ExpressionValue, isUppercase: Bool, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> String? {
    let bytes: [UInt8]
    switch value {
    case .int(let number): return String(number, radix: 16, uppercase: isUppercase)
    case .uint(let number): return String(number, radix: 16, uppercase: isUppercase)
    case .string(let text): bytes = Array(text.utf8)
    case .bytes(let given): bytes = given
    default: return nil
    }
    try budget.spend(bytes: bytes.count * 2)
    return bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: isUppercase) }.joined()
  }

  /// `%f` and `%e`, rounded from the double's exact value, half to even.
  static func fraction(_ value: ExpressionValue, _ precision: Int, isScientific: Bool) -> String? {
    let number: Double
    switch value {
    case .int(let integer): number = Double(integer)
    case .uint(let integer): number = Double(integer)
    case .double(let double): number = double
    default: return nil
    }
    guard number.isFinite else { return ExpressionValue.text(of: number) }
    // A double has at most 309 digits before its point.
    let capacity = precision + 330
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: capacity) { buffer in
      let format = isScientific ? "%.*e" : "%.*f"
      let count = withVaList([CInt(precision), number]) { vsnprintf(buffer.baseAddress, capacity, format, $0) }
      return String(decoding: buffer.prefix(Int(count)).lazy.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}
