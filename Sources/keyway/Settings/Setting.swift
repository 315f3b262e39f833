import Foundation

/// One row of the table of settings: its name, its allowed values, its meaning, and the field that holds its value. The
/// default is the value of the field in `Settings()`.
struct Setting: Sendable {
  /// A value as in its source: typed in a file, text everywhere else.
  enum Value: Hashable, Sendable {
    /// A text of the environment or the command line, which have no types.
    case untyped(String)
    case text(String)
    case integer(Int)
    case list([String])
    /// A description of a value that no setting can have.
    case other(String)
  }

  /// The reason why a value is invalid, as the predicate of a sentence: `is 70000, not between 0 and 65535`.
  struct Mismatch: Error, Hashable, Sendable {
    var reason: String
  }

  /// The dotted name: `heartbeat.seconds`.
  let name: String
  /// The meaning, in one line.
  let help: String
  /// The allowed values, for the page of limits. Empty if any text is allowed.
  let allowed: String
  /// Reads the value from the field.
  let value: @Sendable (Settings) -> Value
  /// Hides the secret parts of a text when settings are shown. Nil if there are none.
  var masked: (@Sendable (String) -> String)?
  /// Checks a value and writes it to the field.
  let store: @Sendable (inout Settings, Value) throws(Mismatch) -> Void

  /// The environment variable: `request.headerBytes` is KEYWAY_REQUEST_HEADER_BYTES.
  var environmentName: String {
    let words = name.map { $0.isUppercase ? "_\($0)" : $0 == "." ? "_" : $0.uppercased() }
    return "KEYWAY_" + words.joined()
  }
}

extension Setting {
  /// Returns the value to show to people, without secrets.
  func shown(_ settings: Settings) -> Value {
    guard let masked, case .text(let text) = value(settings) else { return value(settings) }
    return .text(masked(text))
  }

  typealias Field<Value> = any WritableKeyPath<Settings, Value> & Sendable

  /// Returns a setting with a whole number within a range.
  static func number<Number: FixedWidthInteger & Sendable>(
    _ name: String, _ field: Field<Number>, _ range: ClosedRange<Int>, _ help: String
  ) -> Setting {
    Setting(
      name: name, help: help, allowed: "\(range.lowerBound) to \(range.upperBound)",
      value: { .integer(Int(clamping: $0[keyPath: field])) },
      store: { (settings, value) throws(Mismatch) in
        let number = try value.integer()
        guard range.contains(number) else {
          throw Mismatch(reason: "is \(number), not between \(range.lowerBound) and \(range.upperBound)")
        }
        settings[keyPath: field] = Number(clamping: number)
      })
  }

  /// Returns a setting with any text except the empty one. `masked` hides its secret parts when settings are shown.
  static func text(
    _ name: String, _ field: Field<String>, _ help: String, masked: (@Sendable (String) -> String)? = nil
  ) -> Setting {
    Setting(
      name: name, help: help, allowed: "", value: { .text($0[keyPath: field]) }, masked: masked,
      store: { (settings, value) throws(Mismatch) in settings[keyPath: field] = try value.text() })
  }

  /// Returns a setting with one of the raw values of a type's cases.
  static func choice<Choice: RawRepresentable<String> & CaseIterable & Sendable>(
    _ name: String, _ field: Field<Choice>, _ help: String
  ) -> Setting {
    let choices = Choice.allCases.map(\.rawValue).joined(separator: ", ")
    return Setting(
      name: name, help: help, allowed: choices, value: { .text($0[keyPath: field].rawValue) },
      store: { (settings, value) throws(Mismatch) in
        let text = try value.text()
        guard let choice = Choice(rawValue: text) else {
          throw Mismatch(reason: "is \"\(text)\", not one of \(choices)")
        }
        settings[keyPath: field] = choice
      })
  }

  /// Returns a setting with true or false. `formerNumber` is the setting that replaces a number which earlier versions
  /// accepted here.
  static func flag(
    _ name: String, _ field: Field<Bool>, _ help: String, formerNumber: String? = nil
  ) -> Setting {
    Setting(
      name: name, help: help, allowed: "true, false",
      value: { .other($0[keyPath: field] ? "true" : "false") },
      store: { (settings, value) throws(Mismatch) in
        if let formerNumber, let number = try? value.integer() {
          throw Mismatch(reason: "is the number \(number), not true or false; the maximum number is \(formerNumber)")
        }
        let text = if case .other(let word) = value { word } else { try value.text() }
        guard let isOn = Bool(text) else { throw Mismatch(reason: "is \"\(text)\", not true or false") }
        settings[keyPath: field] = isOn
      })
  }

  /// Returns a setting with a list of texts, separated by commas if the source has no lists.
  static func list(_ name: String, _ field: Field<[String]>, _ help: String) -> Setting {
    Setting(
      name: name, help: help, allowed: "a list", value: { .list($0[keyPath: field]) },
      store: { (settings, value) throws(Mismatch) in settings[keyPath: field] = try value.list() })
  }
}

extension Setting.Value {
  fileprivate func integer() throws(Setting.Mismatch) -> Int {
    switch self {
    case .integer(let integer): return integer
    case .untyped(let text):
      if let integer = Int(text.trimmingCharacters(in: .whitespaces)) { return integer }
    case .text, .list, .other: break
    }
    throw Setting.Mismatch(reason: "is \(words), not a whole number")
  }

  fileprivate func text() throws(Setting.Mismatch) -> String {
    switch self {
    case .untyped(""), .text(""): throw Setting.Mismatch(reason: "is empty")
    case .untyped(let text), .text(let text): return text
    case .integer, .list, .other: throw Setting.Mismatch(reason: "is \(words), not a text")
    }
  }

  fileprivate func list() throws(Setting.Mismatch) -> [String] {
    switch self {
    case .list(let elements): return elements
    case .untyped(let text):
      return text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    case .text, .integer, .other: throw Setting.Mismatch(reason: "is \(words), not a list of texts")
    }
  }

  /// The value, for a message.
  private var words: String {
    switch self {
    case .untyped(let text), .text(let text): "\"\(text)\""
    case .integer(let integer): "the number \(integer)"
    case .list: "a list"
    case .other(let words): words
    }
  }
}
