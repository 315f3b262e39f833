#if canImport(Glibc)
  import Glibc
#endif

/// `text.format(list)`: the clauses of the text, such as `%s`, are replaced by the elements of the list.
enum FormatFunction {
  static let format = FunctionDefinition(
    "format", [([.string, .list(.dyn)], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    var writer = FormatWriter(try arguments.list(1))
    try writer.write(arguments.string(0), &budget)
    return .string(writer.result)
  }
}

/// Writes a text with clauses.
private struct FormatWriter {
  /// The maximum number of decimals that a clause may request.
  private static let precisionLimit = 100

  private(set) var result = ""
  private let arguments: ExpressionList
  private var used = 0

  init(_ arguments: ExpressionList) { self.arguments = arguments }

  /// Writes `text`. Throws if a clause is invalid, or if it has no argument or one that it does not take.
  mutating func write(_ text: String, _ budget: inout EvaluationBudget) throws(EvaluationError) {
    try budget.spend(bytes: text.utf8.count)
    var rest = text.unicodeScalars[...]
    while let percent = rest.firstIndex(of: "%") {
      result.unicodeScalars.append(contentsOf: rest[..<percent])
      rest = rest[rest.index(after: percent)...]
      if rest.first == "%" {
        rest.removeFirst()
        result += "%"
      } else {
        let precision = try FormatWriter.precision(&rest)
        guard let clause = rest.popFirst() else { throw .invalid("format(): the text ends within a clause") }
        let written = try written(clause, precision, try nextArgument(), &budget)
        try budget.spend(bytes: written.utf8.count)
        result += written
      }
    }
    result.unicodeScalars.append(contentsOf: rest)
  }

  private mutating func nextArgument() throws(EvaluationError) -> ExpressionValue {
    guard used < arguments.count else { throw .invalid("format(): the list does not have an argument \(used)") }
    used += 1
    return try arguments.element(at: used - 1)
  }

  /// `.3`, or nil.
  private static func precision(
    _ rest: inout Substring.UnicodeScalarView
  ) throws(EvaluationError) -> Int? {
    guard rest.first == "." else { return nil }
    rest.removeFirst()
    let digits = rest.prefix { Lexer.isDigit($0) }
    rest = rest.dropFirst(digits.count)
    guard let precision = Int(String(Substring(digits))), precision <= precisionLimit else {
      throw .invalid("format(): the precision must be a number up to \(precisionLimit)")
    }
    return precision
  }

  private func written(
    _ clause: Unicode.Scalar, _ precision: Int?, _ value: ExpressionValue, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> String {
    let text: String?
    switch clause {
    case "s": return try FormatWriter.plain(value, &budget, depth: 0)
    case "d": text = FormatWriter.integer(value, radix: 10)
    case "f", "e": text = FormatWriter.fraction(value, precision ?? 6, isScientific: clause == "e")
    case "b": text = FormatWriter.integer(value, radix: 2)
    case "o": text = FormatWriter.integer(value, radix: 8)
    case "x", "X": text = try FormatWriter.hexadecimal(value, isUppercase: clause == "X", &budget)
    default: throw .invalid("format(): '%\(clause)' is not a known clause")
    }
    guard let text else { throw .invalid("format(): %\(clause) does not take a \(value.typeName)") }
    return text
  }

  // MARK: Clauses

  /// Returns a value of any type, as `%s` writes it.
  private static func plain(
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

  /// `%d`, `%b` and `%o`.
  private static func integer(_ value: ExpressionValue, radix: Int) -> String? {
    switch value {
    case .int(let number): String(number, radix: radix)
    case .uint(let number): String(number, radix: radix)
    case .bool(let flag) where radix == 2: flag ? "1" : "0"
    case .double(let number) where radix == 10 && !number.isFinite: ExpressionValue.text(of: number)
    default: nil
    }
  }

  /// `%x` and `%X`, also of the bytes of texts.
  private static func hexadecimal(
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
  private static func fraction(_ value: ExpressionValue, _ precision: Int, isScientific: Bool) -> String? {
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
