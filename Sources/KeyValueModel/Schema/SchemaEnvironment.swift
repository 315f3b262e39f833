import CEL
import Support

/// The names that an expression can use: the keys of an entity, `this` for the object, and the keys of the entities
/// that they lead to.
struct SchemaEnvironment: ExpressionEnvironment {
  /// The index of `this`.
  static let indexOfThis = Int.max

  let schema: Schema
  let entity: Entity

  func type(ofVariable name: String) -> ExpressionType? {
    name == Expression.rootVariable ? .object(entity.name) : type(ofField: name, inObject: entity.name)
  }

  func index(ofVariable name: String) -> Int? {
    name == Expression.rootVariable ? Self.indexOfThis : entity.indexOfKey(name)
  }

  func type(ofField name: String, inObject object: String) -> ExpressionType? {
    guard let entity = schema.entity(named: object), let index = entity.indexOfKey(name) else { return nil }
    return schema.type(of: entity.keys[index]).map(ExpressionType.init)
  }

  func index(ofField name: String, inObject object: String) -> Int? {
    schema.entity(named: object)?.indexOfKey(name)
  }

  var variableNames: [String] { [Expression.rootVariable] + entity.keys.map(\.name) }

  func fieldNames(inObject object: String) -> [String] { schema.entity(named: object)?.keys.map(\.name) ?? [] }
}

/// The check for comparisons with literals that the values of a key can never equal.
extension SchemaEnvironment {
  var refusesBadTimestamps: Bool { true }

  func mistake(comparing operand: ComparedValue, with literal: ExpressionValue, isEquality: Bool) -> String? {
    switch operand {
    case .object(let entity): mistake(comparingObjectsOf: entity, with: literal)
    case .memberOfVariable(let name): isEquality ? mistake(inMembersOf: name, of: entity.name, literal) : nil
    case .memberOfField(let name, let entity): isEquality ? mistake(inMembersOf: name, of: entity, literal) : nil
    case .variable(let name): isEquality ? mistake(inKey: name, of: entity.name, literal) : nil
    case .field(let name, let entity): isEquality ? mistake(inKey: name, of: entity, literal) : nil
    case .whole(let isSigned):
      isEquality && !Self.isInteger(literal, isSigned) ? "a whole number is never \(literal.debugText)" : nil
    }
  }

  private func mistake(comparingObjectsOf entity: String, with literal: ExpressionValue) -> String? {
    guard case .string(let text) = literal else { return nil }
    guard let reference = Reference(text) else { return "\(Self.shown(text)) is not a reference such as \(entity)/1" }
    guard let found = schema.entity(of: reference) else {
      let hint = NearestName.hint(for: reference.entity, among: schema.entities.map(\.name))
      return "the schema has no entity '\(reference.entity)'\(hint)"
    }
    return found.isKind(of: entity) ? nil : "\(Self.shown(text)) is not an object of \(entity), as the other side is"
  }

  private func mistake(inKey name: String, of entity: String, _ literal: ExpressionValue) -> String? {
    guard let entity = schema.entity(named: entity), let index = entity.indexOfKey(name) else { return nil }
    let key = entity.keys[index]
    if key.valueType == .attribute(.integer), !Self.isInteger(literal) {
      return "'\(name)' is an integer and never \(literal.debugText)"
    }
    guard case .attribute(let attribute) = key.kind else { return nil }
    return mistake(in: "'\(name)'", attribute, literal)
  }

  private func mistake(inMembersOf name: String, of entity: String, _ literal: ExpressionValue) -> String? {
    guard let entity = schema.entity(named: entity), let index = entity.indexOfKey(name),
      case .toMany(let toMany) = entity.keys[index].kind, case .value(let attribute) = toMany.member
    else { return nil }
    if attribute.type == .integer, !Self.isInteger(literal) {
      return "a member of '\(name)' is an integer and never \(literal.debugText)"
    }
    return mistake(in: "a member of '\(name)'", attribute, literal)
  }

  private func mistake(in subject: String, _ attribute: Attribute, _ literal: ExpressionValue) -> String? {
    guard let allowed = attribute.allowedValues,
      !allowed.contains(where: { Self.isEqual($0, attribute.type, literal) })
    else { return nil }
    let words = allowed.map(\.json)
    var hint = ""
    if case .string(let text) = literal {
      hint = NearestName.hint(
        for: text,
        among: allowed.compactMap { value in if case .string(let word) = value { word } else { nil } })
    }
    return "\(subject) is never \(literal.debugText): its enum has \(words.joined(separator: ", "))\(hint)"
  }

  /// Returns true if a 64-bit integer can equal a literal. True for a literal that is not a number.
  private static func isInteger(_ literal: ExpressionValue, _ isSigned: Bool = true) -> Bool {
    switch literal {
    case .uint(let number): !isSigned || Int64(exactly: number) != nil
    case .int(let number): isSigned || number >= 0
    // Beyond 2^53 an integer is rounded to a double before the comparison.
    case .double(let number):
      number.rounded() == number && number <= (isSigned ? 0x1p63 : 0x1p64) && number >= (isSigned ? -0x1p63 : 0)
    default: true
    }
  }

  private static func isEqual(_ value: Value, _ type: AttributeType, _ literal: ExpressionValue) -> Bool {
    var allowed = ExpressionValue(json: value)
    if type == .date, case .string(let text) = value, let instant = RFC3339Instant(text),
      let moment = ExpressionTimestamp(seconds: instant.seconds, nanoseconds: instant.nanoseconds)
    {
      allowed = .timestamp(moment)
    }
    var budget = EvaluationBudget(ExpressionLimits())
    return (try? allowed.isEqual(to: literal, &budget)) ?? false
  }

  private static func shown(_ text: String) -> String { ExpressionValue.string(text).debugText }
}

extension ExpressionType {
  /// Creates the type that a key's values have in expressions.
  init(_ type: ValueType) {
    switch type {
    case .object(let entity): self = .object(entity)
    case .list(let element): self = .list(ExpressionType(element))
    case .attribute(let type):
      self =
        switch type {
        case .string: .string
        case .integer: .int
        case .number: .double
        case .boolean: .bool
        case .date: .timestamp
        case .json: .dyn
        }
    }
  }
}

extension ValueType {
  /// Creates the type that an expression's values have in the model.
  init(_ type: ExpressionType) {
    switch type {
    case .bool: self = .attribute(.boolean)
    case .int, .uint: self = .attribute(.integer)
    case .double: self = .attribute(.number)
    case .string, .bytes, .duration, .type: self = .attribute(.string)
    case .timestamp: self = .attribute(.date)
    case .list(let element): self = .list(ValueType(element))
    case .object(let entity): self = .object(entity)
    case .null, .map, .dyn: self = .attribute(.json)
    }
  }
}
