/// What an operator says is to become of data that would not go on under a new schema by itself. Steps are taken in
/// order, and each uses the names as the steps before it left them.
package enum MigrationStep: Hashable, Sendable {
  /// An entity has another name; its objects, and all references to them, change with it.
  case renameEntity(String, to: String)
  /// A key has another name, in its entity and in those that extend it.
  case renameKey(entity: String, key: String, to: String)
  /// The objects of an entity go, those of its subclasses stay. Keys that named one of them name nothing then.
  case dropEntity(String)
  /// The values of a key go, in its entity and in those that extend it.
  case dropKey(entity: String, key: String)
  /// The values of a key take the form that the new schema wants. One that cannot becomes `fallback`; without a
  /// fallback it is an obstacle.
  case convert(entity: String, key: String, fallback: Value?)
  /// Objects that have no value for a key get this one.
  case fill(entity: String, key: String, Value)
  /// All objects get the value of an expression in CEL, which reads the objects as they are at this step.
  case set(entity: String, key: String, expression: String)
}

extension MigrationStep: CustomStringConvertible {
  /// The step as it is written on a line.
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
