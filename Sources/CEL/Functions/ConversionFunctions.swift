/// Conversions between types, `type` and `dyn` (CEL language definition, List of Standard Definitions).
enum ConversionFunctions {
  static let all = [toBool, toInt, toUInt, toDouble, toString, toBytes, toTimestamp, toDuration, type, dynamic]

  private static let type = FunctionDefinition("type", [([.dyn], .type)]) { arguments, _ in
    .type(arguments[0].typeName)
  }

  private static let dynamic = FunctionDefinition("dyn", [([.dyn], .dyn)]) { arguments, _ in arguments[0] }

  private static let toBool = FunctionDefinition(
    "bool", [([.bool], .bool), ([.string], .bool)]
  ) { (arguments, _) throws(EvaluationError) in
    switch arguments[0] {
    case .bool: return arguments[0]
    case .string("1"), .string("t"), .string("T"), .string("true"), .string("TRUE"), .string("True"): return .bool(true)
    case .string("0"), .string("f"), .string("F"), .string("false"), .string("FALSE"), .string("False"):
      return .bool(false)
    case .string: throw .invalid("bool(): \(arguments[0].debugText) is neither true nor false")
    default: throw arguments.mismatch
    }
  }

  private static let toInt = FunctionDefinition(
    "int", [([.int], .int), ([.uint], .int), ([.double], .int), ([.string], .int), ([.timestamp], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    let number: Int64?
    switch arguments[0] {
    case .int: return arguments[0]
    case .uint(let other): number = Int64(exactly: other)
    case .double(let other): number = other.magnitude < 0x1p63 ? Int64(other) : nil
    case .timestamp(let timestamp): number = timestamp.seconds
    case .string(let text):
      try budget.spend(bytes: text.utf8.count)
      number = Int64(text)
    default: throw arguments.mismatch
    }
    guard let number else { throw unreadable("int", arguments[0]) }
    return .int(number)
  }

  private static let toUInt = FunctionDefinition(
    "uint", [([.uint], .uint), ([.int], .uint), ([.double], .uint), ([.string], .uint)]
  ) { (arguments, budget) throws(EvaluationError) in
    let number: UInt64?
    switch arguments[0] {
    case .uint: return arguments[0]
    case .int(let other): number = UInt64(exactly: other)
    case .double(let other): number = other >= 0 && other < 0x1p64 ? UInt64(other) : nil
    case .string(let text):
      try budget.spend(bytes: text.utf8.count)
      number = UInt64(text)
    default: throw arguments.mismatch
    }
    guard let number else { throw unreadable("uint", arguments[0]) }
    return .uint(number)
  }

  private static let toDouble = FunctionDefinition(
    "double", [([.double], .double), ([.int], .double), ([.uint], .double), ([.string], .double)]
  ) { (arguments, budget) throws(EvaluationError) in
    switch arguments[0] {
    case .double: return arguments[0]
    case .int(let number): return .double(Double(number))
    case .uint(let number): return .double(Double(number))
    case .string(let text):
      try budget.spend(bytes: text.utf8.count)
      guard let number = Double(text) else { throw unreadable("double", arguments[0]) }
      return .double(number)
    default: throw arguments.mismatch
    }
  }

  private static func unreadable(_ type: String, _ value: ExpressionValue) -> EvaluationError {
    .invalid("\(type)(): \(value.debugText) is not a valid \(type), or is out of range")
  }

  // MARK: Strings, bytes and times

  private static let toString = FunctionDefinition(
    "string",
    [
      ([.string], .string), ([.bool], .string), ([.int], .string), ([.uint], .string), ([.double], .string),
      ([.bytes], .string), ([.timestamp], .string), ([.duration], .string),
    ]
  ) { (arguments, budget) throws(EvaluationError) in
    switch arguments[0] {
    case .string: return arguments[0]
    case .bool(let flag): return .string(String(flag))
    case .int(let number): return .string(String(number))
    case .uint(let number): return .string(String(number))
    case .double(let number): return .string(ExpressionValue.text(of: number))
    case .timestamp(let timestamp): return .string(timestamp.description)
    case .duration(let duration): return .string(duration.description)
    case .bytes(let bytes):
      try budget.spend(bytes: bytes.count)
      guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalid("string(): bytes are not UTF-8") }
      return .string(text)
    default: throw arguments.mismatch
    }
  }

  private static let toBytes = FunctionDefinition(
    "bytes", [([.bytes], .bytes), ([.string], .bytes)]
  ) { (arguments, budget) throws(EvaluationError) in
    switch arguments[0] {
    case .bytes: return arguments[0]
    case .string(let text):
      try budget.spend(bytes: text.utf8.count)
      return .bytes(Array(text.utf8))
    default: throw arguments.mismatch
    }
  }

  private static let toTimestamp = FunctionDefinition(
    "timestamp", [([.timestamp], .timestamp), ([.string], .timestamp), ([.int], .timestamp)]
  ) { (arguments, _) throws(EvaluationError) in
    let timestamp: ExpressionTimestamp?
    switch arguments[0] {
    case .timestamp: return arguments[0]
    case .string(let text): timestamp = text.utf8.count <= 64 ? ExpressionTimestamp(parsing: text) : nil
    case .int(let seconds): timestamp = ExpressionTimestamp(seconds: seconds)
    default: throw arguments.mismatch
    }
    guard let timestamp else { throw unreadable("timestamp", arguments[0]) }
    return .timestamp(timestamp)
  }

  private static let toDuration = FunctionDefinition(
    "duration", [([.duration], .duration), ([.string], .duration)]
  ) { (arguments, _) throws(EvaluationError) in
    switch arguments[0] {
    case .duration: return arguments[0]
    case .string(let text):
      guard let duration = ExpressionDuration(parsing: text) else { throw unreadable("duration", arguments[0]) }
      return .duration(duration)
    default: throw arguments.mismatch
    }
  }
}

/// `size(value)` and `value.size()` (CEL language definition, List of Standard Definitions).
enum SizeFunction {
  static let size = FunctionDefinition(
    "size", [([.string], .int), ([.bytes], .int), ([.list(.dyn)], .int), ([.map(.dyn, .dyn)], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    switch arguments[0] {
    case .string(let text):
      try budget.spend(bytes: text.utf8.count)
      return .int(Int64(text.unicodeScalars.count))
    case .bytes(let bytes): return .int(Int64(bytes.count))
    case .list(let elements): return .int(Int64(elements.count))
    case .lazyList(let sequence): return .int(Int64(sequence.count))
    case .map(let map): return .int(Int64(map.count))
    default: throw arguments.mismatch
    }
  }
}
