/// One thing that a row shows: a key of its object, or a key path from it.
package enum QueryColumn: Hashable, Sendable {
  /// The key with this index.
  case key(Int)
  /// A key path of several keys, or with an operator.
  case path(ModelKeyPath)

  /// What answers call it, in a row of an entity.
  package func name(in entity: Entity) -> String {
    switch self {
    case .key(let index): entity.keys[index].name
    case .path(let path): path.text
    }
  }
}
