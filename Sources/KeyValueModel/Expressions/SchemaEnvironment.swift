import CEL

/// The names of an expression: the keys of an entity, `this` for the object, and the keys of whatever they lead to.
struct SchemaEnvironment: ExpressionEnvironment {
  /// The number of `this`.
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

extension ExpressionType {
  /// What expressions take a key's values for.
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
  /// What the model takes an expression's values for.
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
