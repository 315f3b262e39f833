
@testable import CEL

/// Values as text that shows their types, so that equal numbers of different types differ.
enum Canonical {
  static func text(_ value: ExpressionValue) -> String {
    switch value {
    case .null: return "null"
    case .bool(let flag): return "\(flag)"
    case .int(let number): return "\(number)"
    case .uint(let number): return "\(number)u"
    case .double(let number): return "\(number)"
    case .string(let text): return "'\(text)'"
    case .bytes(let bytes): return "b\(bytes)"
    case .timestamp(let timestamp): return "timestamp(\(timestamp))"
    case .duration(let duration): return "duration(\(duration))"
    case .type(let name): return "type(\(name))"
    case .object(let object): return object.identity
    case .map(let map):
      return "{" + zip(map.keys, map.values).map { "\(text($0)): \(text($1))" }.sorted().joined(separator: ", ") + "}"
    case .list, .lazyList:
      guard let list = value.asList else { return "?" }
      let elements = (0..<list.count).map { index in (try? list.element(at: index)).map(text) ?? "error" }
      return "[" + elements.joined(separator: ", ") + "]"
    }
  }

  /// The value, or `error: …`.
  static func text(_ result: Result<ExpressionValue, EvaluationError>) -> String {
    switch result {
    case .success(let value): text(value)
    case .failure(let error): "error: \(error.kind.rawValue)"
    }
  }
}
