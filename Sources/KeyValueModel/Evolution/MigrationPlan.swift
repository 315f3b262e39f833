/// How the objects of an old schema become those of a new one: for each key where its value comes from. Worked out from
/// the two schemas and the steps, without a look at the objects.
struct MigrationPlan: Sendable {
  /// What becomes of the objects of one old entity.
  struct EntityPlan: Sendable {
    let old: Entity
    /// What they become; nil where they cannot stay.
    let new: Entity?
    /// The name of the entity by now.
    let name: String
    /// The step that drops them.
    let droppedBy: Int?
    /// The steps that change each of them.
    let steps: [Int]
    /// The obstacle that they are, where they cannot stay and no step drops them.
    var removal: MigrationSite?
    /// Where the new record's values come from, by their storage.
    var columns: [Column] = []
    /// Values of the old record that have no place in the new one.
    var lost: [LostKey] = []
    /// Whether a record of the new entity has the very values of the old one's.
    var isVerbatim = false
  }

  /// Where one stored value comes from.
  struct Column: Sendable {
    enum Source: Sendable {
      /// The old record has none.
      case fresh
      /// A value of the old record.
      case carried(storage: Int, Key)
      /// A value of the old record that does not go with the new key: an obstacle, where there is one.
      case conflicting(storage: Int, MigrationSite)
    }

    let key: Key
    let site: MigrationSite
    let source: Source
    /// The key as a step names it that converts or drops its values.
    let place: String
    /// Whether the old value goes over as it is.
    var isVerbatim = false
    /// Whether the value may turn out to be null, and must not.
    var mayLackValue = false
    /// Whether both sides of a relationship named one another before and do so still.
    var isSettled = true
    var conversion: (step: Int, fallback: Value?)?
    /// In the order of the steps.
    var fills: [(step: Int, value: Value)] = []
    var setting: (step: Int, expression: KeyExpression)?
  }

  /// A stored key that the new schema does not have, or whose values are dropped.
  struct LostKey: Sendable {
    let storage: Int
    /// The obstacle that its values are; nil where a step drops them.
    let site: MigrationSite?
  }

  let old: Schema
  let new: Schema
  let steps: [MigrationStep]
  /// By the index of the old entity.
  private(set) var entities: [EntityPlan] = []
  /// Steps with mistakes.
  private(set) var mistakes: [MigrationObstacle] = []
  /// The obstacles to any object that has a value there, in the order of the schema.
  private(set) var conflicts: [MigrationSite] = []
  let names: EvolvingNames
  /// The conversions that have something to convert.
  var usedConversions: Set<Int> = []
  private var positionsByNewEntity: [Int?] = []

  init(from old: Schema, to new: Schema, steps: [MigrationStep]) {
    self.old = old
    self.new = new
    self.steps = steps
    names = EvolvingNames(of: old, after: steps)
    mistakes = names.mistakes
    checkFills()
    checkSettings()
    entities = names.entities.map { entity in
      EntityPlan(
        old: entity.entity, new: entity.droppedBy == nil ? new.entity(named: entity.name) : nil, name: entity.name,
        droppedBy: entity.droppedBy, steps: entity.steps)
    }
    positionsByNewEntity = Array(repeating: nil, count: new.entities.count)
    for position in entities.indices {
      plan(position)
      if let entity = entities[position].new { positionsByNewEntity[entity.index] = position }
    }
    checkConversions()
    conflicts.sort()
  }

  /// What an object is called under the new schema; nil where it goes. `reference` must be one of the old schema's.
  func name(of reference: Reference) -> Reference? {
    guard let entity = old.entity(of: reference), let new = entities[entity.index].new else { return nil }
    return new.name == entity.name ? reference : Reference(entity: new.name, id: reference.id)
  }

  /// The plan for the objects of a new entity; nil where it has none yet.
  func plan(for entity: Entity) -> EntityPlan? { positionsByNewEntity[entity.index].map { entities[$0] } }

  // MARK: Entities

  private mutating func plan(_ position: Int) {
    let names = names.entities[position]
    guard let new = entities[position].new else {
      guard names.droppedBy == nil else { return }
      let removal = MigrationSite(
        entityOrder: self.new.entities.count + position, entity: names.name, key: nil, rank: .removal,
        reason: "is not in the new schema", remedy: "`drop \(names.name)`, or `rename \(names.name) NEW`")
      conflicts.append(removal)
      entities[position].removal = removal
      return
    }
    var columns: [Column] = []
    for (index, key) in new.keys.enumerated() where key.storage != nil {
      columns.append(column(index, key, of: new, position))
    }
    entities[position].lost = lostKeys(position, new)
    entities[position].isVerbatim =
      columns.count == names.entity.storageCount
      && columns.enumerated().allSatisfy { index, column in
        guard column.isVerbatim, column.fills.isEmpty, case .carried(index, _) = column.source else { return false }
        return true
      }
    entities[position].columns = columns
  }

  /// The stored keys whose values have no place in the new entity.
  private mutating func lostKeys(_ position: Int, _ new: Entity) -> [LostKey] {
    let names = names.entities[position]
    var lost: [LostKey] = []
    for (index, key) in names.entity.keys.enumerated() {
      guard let storage = key.storage else { continue }
      guard let name = names.keys[index] else {
        lost.append(LostKey(storage: storage, site: nil))
        continue
      }
      let place = new.indexOfKey(name)
      if let place, new.keys[place].storage != nil { continue }
      let entity = highestLoser(of: index, named: name, from: position, isComputed: place != nil)
      let site = MigrationSite(
        entityOrder: entity.new?.index ?? new.index, keyOrder: place ?? new.keys.count + index, entity: entity.name,
        key: name, rank: .removal,
        reason: place == nil ? "is not in the new schema" : "is stored and becomes computed",
        remedy: place == nil
          ? "`drop \(entity.name).\(name)`, or `rename \(entity.name).\(name) NEW`" : "`drop \(entity.name).\(name)`")
      add(site)
      lost.append(LostKey(storage: storage, site: site))
    }
    return lost
  }

  /// The topmost of the old ancestors that lose a key in the same way: where it is best dropped.
  private func highestLoser(of index: Int, named name: String, from position: Int, isComputed: Bool) -> EntityPlan {
    var highest = entities[position]
    while let parent = highest.old.parent.flatMap(old.entity(named:)), parent.keys.indices.contains(index),
      names.entities[parent.index].keys[index] == name, let new = entities[parent.index].new
    {
      let place = new.indexOfKey(name)
      guard (place != nil) == isComputed, place.map({ new.keys[$0].storage == nil }) ?? true else { break }
      highest = entities[parent.index]
    }
    return highest
  }

  mutating func add(_ site: MigrationSite) {
    if !conflicts.contains(site) { conflicts.append(site) }
  }

  /// Notes that a step has a mistake.
  mutating func report(_ step: Int, _ reason: String) {
    mistakes.append(MigrationObstacle(entity: nil, reason: "step '\(steps[step])': \(reason)"))
  }
}
