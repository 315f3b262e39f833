extension ConversionFunctions {
  static let toString = FunctionDefinition(
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

  static let toBytes = FunctionDefinition(
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

  static let toTimestamp = FunctionDefinition(
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

  static let toDuration = FunctionDefinition(
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
