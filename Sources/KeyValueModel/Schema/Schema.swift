import CEL
import Support

/// Every entity of a model. Immutable, and checked as a whole when it is loaded.
public struct Schema: Sendable {
  /// What a schema holds, in one object: it is copied with every state, and each copy counts one reference.
  private final class Content: Sendable {
    let entities: [Entity]
    let names: NameTable
    let isLenient: Bool
    let warnings: [SchemaError.Problem]

    init(entities: [Entity], isLenient: Bool, warnings: [SchemaError.Problem]) {
      self.entities = entities
      self.isLenient = isLenient
      self.warnings = warnings
      names = NameTable(entities.map(\.name))
    }
  }

  private let content: Content

  init(entities: [Entity], isLenient: Bool = false, warnings: [SchemaError.Problem] = []) {
    content = Content(entities: entities, isLenient: isLenient, warnings: warnings)
  }

  /// The entities in the order of the file.
  public var entities: [Entity] { content.entities }

  /// Passages of the schema file that are valid and probably not meant so, in the order of the file.
  public var warnings: [SchemaError.Problem] { content.warnings }

  /// Whether computed keys whose type is not known yet count as JSON of any sort: while a schema is being compiled.
  var isLenient: Bool { content.isLenient }

  /// The entity of this name.
  public func entity(named name: String) -> Entity? {
    content.names.index(of: name).map { entities[$0] }
  }

  /// The entity that a reference names, whether or not there is such an object.
  public func entity(of reference: Reference) -> Entity? {
    entityIndex(of: reference).map { entities[$0] }
  }

  /// The index of the same.
  func entityIndex(of reference: Reference) -> Int? {
    content.names.index(ofTextBefore: UInt8(ascii: "/"), in: reference.text)
  }

  /// The entity of this name, or `unknown-entity`.
  public func requireEntity(_ name: String) throws(ModelError) -> Entity {
    guard let entity = entity(named: name) else { throw ModelError(.unknownEntity, unknown(name)) }
    return entity
  }

  /// The entity that a reference names, or `unknown-entity`.
  public func requireEntity(of reference: Reference) throws(ModelError) -> Entity {
    guard let entity = entity(of: reference) else { throw ModelError(.unknownEntity, unknown(reference.entity)) }
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
