internal import Foundation

/// The type of a setting, with its default, what is allowed, and where in `Settings` it goes.
enum SettingKind: Sendable {
  /// A whole number within a range.
  case integer(any (WritableKeyPath<Settings, Int> & Sendable), Int, ClosedRange<Int>)
  /// A text; one of the choices where there are any.
  case text(any (WritableKeyPath<Settings, String> & Sendable), String, choices: [String])
  /// A list of texts; separated by commas where the source has no lists.
  case list(any (WritableKeyPath<Settings, [String]> & Sendable), [String])

  /// Puts the default in.
  func reset(_ settings: inout Settings) {
    switch self {
    case .integer(let path, let value, _): settings[keyPath: path] = value
    case .text(let path, let value, _): settings[keyPath: path] = value
    case .list(let path, let value): settings[keyPath: path] = value
    }
  }

  /// Checks a value and puts it in.
  func store(_ value: SettingValue, in settings: inout Settings) throws(InvalidSetting) {
    switch self {
    case .integer(let path, _, let range): settings[keyPath: path] = try Self.integer(value, in: range)
    case .text(let path, _, let choices): settings[keyPath: path] = try Self.text(value, of: choices)
    case .list(let path, _): settings[keyPath: path] = try Self.list(value)
    }
  }

  /// The value in the settings, as a file has it.
  func value(in settings: Settings) -> SettingValue {
    switch self {
    case .integer(let path, _, _): .integer(settings[keyPath: path])
    case .text(let path, _, _): .text(settings[keyPath: path])
    case .list(let path, _): .list(settings[keyPath: path])
    }
  }

  private static func integer(_ value: SettingValue, in range: ClosedRange<Int>) throws(InvalidSetting) -> Int {
    let number: Int
    switch value {
    case .integer(let integer): number = integer
    case .untyped(let text):
      guard let integer = Int(text.trimmingCharacters(in: .whitespaces)) else {
        throw InvalidSetting(reason: "is \"\(text)\", not a whole number")
      }
      number = integer
    case .text, .list, .other: throw InvalidSetting(reason: "is \(value.words), not a whole number")
    }
    guard range.contains(number) else {
      throw InvalidSetting(reason: "is \(number), not between \(range.lowerBound) and \(range.upperBound)")
    }
    return number
  }

  private static func text(_ value: SettingValue, of choices: [String]) throws(InvalidSetting) -> String {
    guard let text = value.asText else { throw InvalidSetting(reason: "is \(value.words), not a text") }
    guard !text.isEmpty else { throw InvalidSetting(reason: "is empty") }
    guard choices.isEmpty || choices.contains(text) else {
      throw InvalidSetting(reason: "is \"\(text)\", not one of \(choices.joined(separator: ", "))")
    }
    return text
  }

  private static func list(_ value: SettingValue) throws(InvalidSetting) -> [String] {
    switch value {
    case .list(let elements): return elements
    case .untyped(let text):
      return text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    case .text, .integer, .other: throw InvalidSetting(reason: "is \(value.words), not a list of texts")
    }
  }
}

extension SettingValue {
  fileprivate var asText: String? {
    switch self {
    case .untyped(let text), .text(let text): text
    case .integer, .list, .other: nil
    }
  }

  /// The value for a message.
  fileprivate var words: String {
    switch self {
    case .untyped(let text), .text(let text): "\"\(text)\""
    case .integer(let integer): "the number \(integer)"
    case .list: "a list"
    case .other(let words): words
    }
  }
}
