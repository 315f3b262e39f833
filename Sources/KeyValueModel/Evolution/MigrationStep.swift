/// An instruction of the operator for data that cannot be used under a new schema unchanged. Steps are taken in order,
/// and each uses the names that the steps before it have left.
package enum MigrationStep: Hashable, Sendable {
  /// Renames an entity; its objects, and all references to them, change with it.
  case renameEntity(String, to: String)
  /// Renames a key in its entity and in the entities that extend it.
  case renameKey(entity: String, key: String, to: String)
  /// Deletes the objects of an entity, not those of its subclasses. References to a deleted object are removed.
  case dropEntity(String)
  /// Deletes the values of a key in its entity and in the entities that extend it.
  case dropKey(entity: String, key: String)
  /// Converts the values of a key to the form that the new schema requires. A value that cannot be converted becomes
  /// `fallback`; without a fallback it is an obstacle.
  case convert(entity: String, key: String, fallback: Value?)
  /// Gives this value to objects without a value for the key.
  case fill(entity: String, key: String, Value)
  /// Sets the key of all objects to the value of an expression in CEL, which reads the objects as they are at this
  /// step.
  case set(entity: String, key: String, expression: String)
}

extension MigrationStep: CustomStringConvertible {
  /// The step as written on a line.
  package var description: String {
    switch self {
    case .renameEntity(let entity, let name): "rename \(entity) \(name)"
    case .renameKey(let entity, let key, let name): "rename \(entity).\(key) \(name)"
    case .dropEntity(let entity): "drop \(entity)"
    case .dropKey(let entity, let key): "drop \(entity).\(key)"
    case .convert(let entity, let key, nil): "convert \(entity).\(key)"
    case .convert(let entity, let key, let fallback?): "convert \(entity).\(key) or \(fallback.json)"
    case .fill(let entity, let key, let value): "fill \(entity).\(key) \(value.json)"
    case .set(let entity, let key, let expression): "set \(entity).\(key) = \(expression)"
    }
  }
}

extension MigrationStep {
  /// The maximum number of lines of a file of steps.
  package static var maximumLines: Int { 10_000 }

  private static var forms: String {
    "rename Entity NEW, rename Entity.key NEW, drop Entity, drop Entity.key, convert Entity.key [or JSON], "
      + "fill Entity.key JSON, set Entity.key = EXPRESSION"
  }

  /// Creates a step from one line: `rename Person.name fullName`, `drop Invoice`, `convert Account.balance or 0`, `fill
  /// Account.currency "EUR"`, `set Person.name = first + ' ' + last`. Throws if the line is not a step.
  package init(_ text: String) throws(MigrationStepError) {
    var rest = Substring(text.trimmingBlanks)
    let verb = Self.word(&rest)
    let subject = Self.word(&rest)
    guard ["rename", "drop", "convert", "fill", "set"].contains(verb) else {
      throw MigrationStepError(description: "'\(text)' is not a migration step; the steps are \(Self.forms)")
    }
    let parts = subject.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard let entity = parts.first, Reference(entity: entity, id: "1") != nil, parts.count < 3,
      parts.count == 1 || KeyPathGrammar.isKey(parts[1])
    else {
      throw MigrationStepError(description: "'\(text)': '\(subject)' is neither an Entity nor an Entity.key")
    }
    let key = parts.count == 2 ? parts[1] : nil
    switch verb {
    case "rename": self = try Self.rename(text, entity, key, &rest)
    case "drop":
      self = key.map { .dropKey(entity: entity, key: $0) } ?? .dropEntity(entity)
      guard rest.isEmpty else { throw MigrationStepError(description: "'\(text)': nothing may follow '\(subject)'") }
    default:
      guard let key else {
        throw MigrationStepError(description: "'\(text)': '\(verb)' needs an Entity.key, not '\(subject)'")
      }
      switch verb {
      case "convert": self = try Self.convert(text, entity, key, &rest)
      case "fill": self = try Self.fill(text, entity, key, rest)
      default: self = try Self.set(text, entity, key, rest)
      }
    }
  }

  /// The steps of a file: one step a line; empty lines and lines that begin with `#` are skipped. Throws at the first
  /// line that is not a step, with its number.
  package static func steps(inFile text: String) throws(MigrationStepError) -> [MigrationStep] {
    let lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard lines.count <= maximumLines else {
      throw MigrationStepError(description: "a file of steps has at most \(maximumLines) lines")
    }
    var steps: [MigrationStep] = []
    for (number, line) in lines.enumerated() {
      let line = line.trimmingBlanks
      guard !line.isEmpty, !line.hasPrefix("#") else { continue }
      do throws(MigrationStepError) {
        steps.append(try MigrationStep(line))
      } catch {
        throw MigrationStepError(description: "line \(number + 1): \(error)")
      }
    }
    return steps
  }

  private static func rename(
    _ text: String, _ entity: String, _ key: String?, _ rest: inout Substring
  ) throws(MigrationStepError) -> MigrationStep {
    let name = word(&rest)
    guard !name.isEmpty, rest.isEmpty else {
      throw MigrationStepError(description: "'\(text)': 'rename' needs one new name")
    }
    guard let key else {
      guard Reference(entity: name, id: "1") != nil else {
        throw MigrationStepError(
          description: "'\(text)': an entity's name is a letter followed by letters, digits and '_'")
      }
      return .renameEntity(entity, to: name)
    }
    guard KeyPathGrammar.isKey(name) else {
      throw MigrationStepError(
        description: "'\(text)': the new name must be a key alone: a letter or '_' followed by letters, digits and '_'")
    }
    return .renameKey(entity: entity, key: key, to: name)
  }

  private static func convert(
    _ text: String, _ entity: String, _ key: String, _ rest: inout Substring
  ) throws(MigrationStepError) -> MigrationStep {
    guard !rest.isEmpty else { return .convert(entity: entity, key: key, fallback: nil) }
    guard word(&rest) == "or" else {
      throw MigrationStepError(description: "'\(text)': after the key, 'convert' takes 'or' and a JSON value")
    }
    return .convert(entity: entity, key: key, fallback: try value(rest, text))
  }

  private static func fill(
    _ text: String, _ entity: String, _ key: String, _ rest: Substring
  ) throws(MigrationStepError) -> MigrationStep {
    let value = try value(rest, text)
    guard !value.isNull else { throw MigrationStepError(description: "'\(text)': 'fill' needs a value, not null") }
    return .fill(entity: entity, key: key, value)
  }

  private static func set(
    _ text: String, _ entity: String, _ key: String, _ rest: Substring
  ) throws(MigrationStepError) -> MigrationStep {
    let expression = rest.dropFirst().trimmingBlanks
    guard rest.first == "=", !expression.isEmpty else {
      throw MigrationStepError(description: "'\(text)': after the key, 'set' takes '=' and an expression")
    }
    return .set(entity: entity, key: key, expression: expression)
  }

  private static func value(_ json: Substring, _ text: String) throws(MigrationStepError) -> Value {
    do throws(JSONError) {
      return try Value(json: String(json))
    } catch {
      throw MigrationStepError(
        description: "'\(text)': '\(json)' is not JSON: \(error.reason); a string needs quotation marks: \"EUR\"")
    }
  }

  /// Removes the next word and the blanks after it from `rest`, and returns the word.
  private static func word(_ rest: inout Substring) -> String {
    let word = rest.prefix { !$0.isBlank }
    rest = rest[word.endIndex...].drop(while: \.isBlank)
    return String(word)
  }
}

/// The error for a line that is not a migration step.
package struct MigrationStepError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The mistake, as a sentence for the author of the step.
  package let description: String
}

extension Character {
  fileprivate var isBlank: Bool { self == " " || self == "\t" || self == "\r" }
}

extension StringProtocol {
  fileprivate var trimmingBlanks: String {
    var text = drop(while: \.isBlank)
    while text.last?.isBlank == true { text.removeLast() }
    return String(text)
  }
}
