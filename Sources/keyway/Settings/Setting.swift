import Foundation

/// One row of the table of settings: its name, what it may be, what it means, and the field that holds its value. The
/// default is what the field holds in `Settings()`.
struct Setting: Sendable {
  /// A value as its source has it: typed in a file, text everywhere else.
  enum Value: Hashable, Sendable {
    /// Text of the environment or the command line, which has no types.
    case untyped(String)
    case text(String)
    case integer(Int)
    case list([String])
    /// What no setting can be, in words.
    case other(String)
  }

  /// Why a value does not fit, as the predicate of a sentence: `is 70000, not between 0 and 65535`.
  struct Mismatch: Error, Hashable, Sendable {
    var reason: String
  }

  /// The dotted name: `heartbeat.seconds`.
  let name: String
  /// What it is, in one line.
  let help: String
  /// Which values are allowed, for the page of limits; empty where any text is.
  let allowed: String
  /// Reads the value from the field.
  let value: @Sendable (Settings) -> Value
  /// Hides the secret parts of a text for people who look at the settings; nil where there are none.
  var masked: (@Sendable (String) -> String)?
  /// Checks a value and writes it to the field.
  let store: @Sendable (inout Settings, Value) throws(Mismatch) -> Void

  /// The variable of the environment: `request.headerBytes` is KEYWAY_REQUEST_HEADER_BYTES.
  var environmentName: String {
    let words = name.map { $0.isUppercase ? "_\($0)" : $0 == "." ? "_" : $0.uppercased() }
    return "KEYWAY_" + words.joined()
  }
}

extension Setting {
  /// The value as it may be shown to people.
  func shown(_ settings: Settings) -> Value {
    guard let masked, case .text(let text) = value(settings) else { return value(settings) }
    return .text(masked(text))
  }

  typealias Field<Value> = any WritableKeyPath<Settings, Value> & Sendable

  /// A whole number within a range.
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

  /// Any text but the empty one; `masked` hides what is secret in it where settings are shown.
  static func text(
    _ name: String, _ field: Field<String>, _ help: String, masked: (@Sendable (String) -> String)? = nil
  ) -> Setting {
    Setting(
      name: name, help: help, allowed: "", value: { .text($0[keyPath: field]) }, masked: masked,
      store: { (settings, value) throws(Mismatch) in settings[keyPath: field] = try value.text() })
  }

  /// One of the texts that the cases of a type stand for.
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

  /// True or false. `formerNumber` is the setting to which a number belongs that earlier versions took here.
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

  /// A list of texts; separated by commas where the source has no lists.
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

  /// The value for a message.
  private var words: String {
    switch self {
    case .untyped(let text), .text(let text): "\"\(text)\""
    case .integer(let integer): "the number \(integer)"
    case .list: "a list"
    case .other(let words): words
    }
  }
}
