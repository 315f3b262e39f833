/// A place of the new schema with one sort of obstacle: objects that meet the same one are counted together. In the
/// order in which obstacles are told.
struct MigrationSite: Hashable, Sendable, Comparable {
  /// The sorts of obstacles, in the order in which they are told of one key.
  enum Rank: Int, Sendable {
    case removal, shape, value, order, inverse, absence
  }

  let entityOrder: Int
  let keyOrder: Int
  let entity: String
  let key: String?
  let rank: Rank
  let reason: String
  let remedy: String?

  init(
    entityOrder: Int, keyOrder: Int = -1, entity: String, key: String?, rank: Rank, reason: String, remedy: String?
  ) {
    self.entityOrder = entityOrder
    self.keyOrder = keyOrder
    self.entity = entity
    self.key = key
    self.rank = rank
    self.reason = reason
    self.remedy = remedy
  }

  /// A key of the new schema, for obstacles to come.
  init(_ entity: Entity, _ index: Int, _ key: Key) {
    self.init(
      entityOrder: entity.index, keyOrder: index, entity: entity.name, key: key.name, rank: .value, reason: "",
      remedy: nil)
  }

  /// An obstacle at this place.
  func with(_ rank: Rank, _ reason: String, remedy: String?) -> MigrationSite {
    MigrationSite(
      entityOrder: entityOrder, keyOrder: keyOrder, entity: entity, key: key, rank: rank, reason: reason,
      remedy: remedy)
  }

  /// The obstacle, without objects.
  var obstacle: MigrationObstacle { MigrationObstacle(entity: entity, key: key, reason: reason, remedy: remedy) }

  static func < (left: MigrationSite, right: MigrationSite) -> Bool {
    (left.entityOrder, left.keyOrder, left.rank.rawValue, left.reason, left.remedy ?? "")
      < (right.entityOrder, right.keyOrder, right.rank.rawValue, right.reason, right.remedy ?? "")
  }
}

extension Schema {
  /// The topmost ancestor that has the key at an index: where it is declared, if it is stored.
  func declaringEntity(of index: Int, in entity: Entity) -> Entity {
    var declaring = entity
    while let parent = declaring.parent.flatMap(self.entity(named:)), parent.keys.indices.contains(index) {
      declaring = parent
    }
    return declaring
  }
}
