import Foundation

@testable import CEL

/// One line of the language's own conformance tests.
struct ConformanceCase {
  let file: String
  let section: String
  let name: String
  let text: String
  /// The value as `canonical` writes it; nil when an error is expected.
  let expected: String?
  let bindings: [(name: String, value: ExpressionValue)]
  let isUnchecked: Bool

  var id: String { "\(file)/\(section)/\(name)" }

  init?(file: String, line: Substring) throws {
    let data = Data(line.utf8)
    guard let json = try JSONSerialization.jsonObject(with: data) as? [String: Any] else { return nil }
    guard let section = json["section"] as? String, let name = json["name"] as? String else { return nil }
    guard let text = json["expr"] as? String else { return nil }
    (self.file, self.section, self.name, self.text) = (file, section, name, text)
    expected = try json["value"].map { Canonical.text(try ConformanceCase.value($0)) }
    bindings = try (json["bindings"] as? [[Any]] ?? []).map { pair in
      (pair[0] as? String ?? "", try ConformanceCase.value(pair[1]))
    }
    isUnchecked = json["disable_check"] as? Bool ?? false
  }

  struct Unreadable: Error {}

  /// Reads a typed value, such as `{"int": 1}`.
  static func value(_ json: Any) throws -> ExpressionValue {
    guard let json = json as? [String: Any], let (type, content) = json.first else { throw Unreadable() }
    switch (type, content) {
    case ("null", _): return .null
    case ("bool", let flag as Bool): return .bool(flag)
    case ("int", let number as NSNumber): return .int(number.int64Value)
    case ("uint", let number as NSNumber): return .uint(number.uint64Value)
    case ("double", let text as String):
      guard let number = Double(text) else { throw Unreadable() }
      return .double(number)
    case ("string", let text as String): return .string(text)
    case ("type", let text as String): return .type(text)
    case ("bytes", let text as String):
      let digits = Array(text)
      return .bytes(
        stride(from: 0, to: digits.count, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) })
    case ("list", let elements as [Any]): return .list(try elements.map(value))
    case ("map", let entries as [[Any]]):
      return .map(try ExpressionMap(try entries.map { (try value($0[0]), try value($0[1])) }))
    default: throw Unreadable()
    }
  }
}

/// Variables with their values, whose types are those of the values.
struct Bindings: ExpressionEnvironment, ExpressionActivation {
  private let values: [(name: String, value: ExpressionValue)]

  init(_ values: [(name: String, value: ExpressionValue)] = []) { self.values = values }

  func type(ofVariable name: String) -> ExpressionType? {
    values.first { $0.name == name }.map { Bindings.type($0.value) }
  }

  func index(ofVariable name: String) -> Int? { values.firstIndex { $0.name == name } }

  func type(ofField name: String, inObject object: String) -> ExpressionType? { nil }

  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    guard values.indices.contains(index) else { throw EvaluationError(.undeclaredReference, name) }
    return values[index].value
  }

  private static func type(_ value: ExpressionValue) -> ExpressionType {
    switch value {
    case .list: .list(.dyn)
    case .map: .map(.dyn, .dyn)
    case .timestamp: .timestamp
    case .duration: .duration
    default: ExpressionType(literal: value)
    }
  }
}

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
