import Expressions
import Notation

/// Every entity of a model. Immutable, and checked as a whole when it is loaded.
public struct Schema: Sendable {
  /// The entities in the order of the file.
  public let entities: [Entity]

  private let indexesByName: [ExactText: Int]
  /// Whether computed keys whose type is not known yet count as JSON of any sort: while a schema is being compiled.
  let isLenient: Bool

  init(entities: [Entity], isLenient: Bool = false) {
    self.entities = entities
    self.isLenient = isLenient
    indexesByName = Dictionary(uniqueKeysWithValues: entities.map { (ExactText($0.name), $0.index) })
  }

  /// The entity of this name.
  public func entity(named name: String) -> Entity? {
    indexesByName[ExactText(name)].map { entities[$0] }
  }

  /// The entity of this name, or `unknown-entity`.
  public func requireEntity(_ name: String) throws(ModelError) -> Entity {
    guard let entity = entity(named: name) else { throw ModelError(.unknownEntity, unknown(name)) }
    return entity
  }

  /// What is said about a name that no entity has, with the nearest that one has.
  package func unknown(_ name: String) -> String {
    "there is no entity '\(name)'\(NearestName.hint(for: name, among: entities.map(\.name)))"
  }

  /// An entity and everything that extends it, in the order of the file.
  public func family(of entity: Entity) -> [Entity] {
    entities.filter { $0.isKind(of: entity.name) }
  }
}
