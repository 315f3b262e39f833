/// What the entities and keys of an old schema are called while steps are taken, and what is to become of their values.
struct EvolvingNames: Sendable {
  /// An entity of the old schema.
  struct OldEntity: Sendable {
    let entity: Entity
    /// What it is called by now.
    var name: String
    /// The step that drops its objects.
    var droppedBy: Int?
    /// What its keys are called by now, by their index; nil for those whose values are dropped.
    var keys: [String?]
    /// The steps that change every object: those that renamed it or one of its keys, or dropped a key.
    var steps: [Int] = []
    /// Those of them that renamed the entity: they change the objects that name its objects, too.
    var renames: [Int] = []

    /// The index of the stored key that is called so by now.
    func storedKey(named name: String) -> Int? {
      keys.indices.first { keys[$0] == name && entity.keys[$0].storage != nil }
    }
  }

  /// A step about the values of a key, by the names of the new schema in the end.
  struct KeyStep: Sendable {
    let step: Int
    var entity: String
    var key: String
    /// What to fill in, or to convert to where nothing else can be.
    let value: Value?
  }

  private(set) var entities: [OldEntity]
  private(set) var conversions: [KeyStep] = []
  private(set) var fills: [KeyStep] = []
  /// The steps that name what is not there, or a name that is taken.
  private(set) var mistakes: [MigrationObstacle] = []

  /// The names after `steps`.
  init(of schema: Schema, after steps: [MigrationStep]) {
    entities = schema.entities.map { OldEntity(entity: $0, name: $0.name, keys: $0.keys.map(\.name)) }
    for (number, step) in steps.enumerated() { take(step, number) }
  }

  private mutating func take(_ step: MigrationStep, _ number: Int) {
    switch step {
    case .renameEntity(let entity, let name): rename(entity, to: name, step, number)
    case .renameKey(let entity, let key, let name): rename(entity, key, to: name, step, number)
    case .dropEntity(let entity):
      guard let position = position(of: entity, step) else { return }
      entities[position].droppedBy = number
    case .dropKey(let entity, let key): drop(entity, key, step, number)
    case .convert(let entity, let key, let fallback):
      guard let position = position(of: entity, step), storedKey(key, in: position, step) != nil else { return }
      conversions.append(KeyStep(step: number, entity: entity, key: key, value: fallback))
    case .fill(let entity, let key, let value):
      // The key may be one of the new schema alone: it is looked up when all names are known.
      fills.append(KeyStep(step: number, entity: entity, key: key, value: value))
    }
  }

  private mutating func rename(_ entity: String, to name: String, _ step: MigrationStep, _ number: Int) {
    guard let position = position(of: entity, step) else { return }
    guard !entities.contains(where: { $0.name == name && $0.droppedBy == nil }) else {
      return report(step, "there is an entity '\(name)' already")
    }
    entities[position].name = name
    entities[position].steps.append(number)
    entities[position].renames.append(number)
    for index in conversions.indices where conversions[index].entity == entity { conversions[index].entity = name }
    for index in fills.indices where fills[index].entity == entity { fills[index].entity = name }
  }

  private mutating func rename(
    _ entity: String, _ key: String, to name: String, _ step: MigrationStep, _ number: Int
  ) {
    guard let position = position(of: entity, step), let index = storedKey(key, in: position, step) else { return }
    let family = family(of: position).filter { entities[$0].keys[index] == key }
    for member in family {
      let taken = zip(entities[member].keys, entities[member].entity.keys).contains {
        $0.0 == name && $0.1.storage != nil
      }
      guard !taken else { return report(step, "\(entities[member].name) has a key '\(name)' already") }
    }
    for member in family {
      entities[member].keys[index] = name
      entities[member].steps.append(number)
    }
    let names = Set(family.map { entities[$0].name })
    for index in conversions.indices where names.contains(conversions[index].entity) && conversions[index].key == key {
      conversions[index].key = name
    }
    for index in fills.indices where names.contains(fills[index].entity) && fills[index].key == key {
      fills[index].key = name
    }
  }

  private mutating func drop(_ entity: String, _ key: String, _ step: MigrationStep, _ number: Int) {
    guard let position = position(of: entity, step), let index = storedKey(key, in: position, step) else { return }
    for member in family(of: position) where entities[member].keys[index] == key {
      entities[member].keys[index] = nil
      entities[member].steps.append(number)
    }
  }

  // MARK: Looking up

  /// An entity of the old schema and those that extend it, as it says; a key has one index in all of them.
  private func family(of position: Int) -> [Int] {
    let name = entities[position].entity.name
    return entities.indices.filter { entities[$0].entity.isKind(of: name) }
  }

  private mutating func position(of entity: String, _ step: MigrationStep) -> Int? {
    let position = entities.firstIndex { $0.name == entity && $0.droppedBy == nil }
    if position == nil { report(step, "the data has no entity '\(entity)' at this step") }
    return position
  }

  private mutating func storedKey(_ key: String, in position: Int, _ step: MigrationStep) -> Int? {
    let entity = entities[position]
    if let index = entity.storedKey(named: key) { return index }
    report(
      step,
      !entity.keys.contains(key)
        ? "\(entity.name) has no key '\(key)' at this step"
        : "'\(key)' of \(entity.name) is computed; what is not stored wants no step")
    return nil
  }

  /// Notes that a step has a mistake.
  mutating func report(_ step: MigrationStep, _ reason: String) {
    mistakes.append(MigrationObstacle(entity: nil, reason: "step '\(step)': \(reason)"))
  }
}
