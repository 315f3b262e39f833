import Support

/// The names that the entities and keys of an old schema have after each step, and what the steps do with their values.
struct EvolvingNames: Sendable {
  /// An entity of the old schema.
  struct OldEntity: Sendable {
    let entity: Entity
    /// Its present name.
    var name: String
    /// The number of the step that drops its objects; nil if none does.
    var droppedBy: Int?
    /// The present names of its keys, by their index; nil for keys whose values are dropped.
    var keys: [String?]
    /// The steps that change every object of the entity: the steps that renamed it or one of its keys, or dropped a
    /// key.
    var steps: [Int] = []
    /// The steps among these that renamed the entity: they also change the objects that refer to its objects.
    var renames: [Int] = []

    /// The index of the stored key whose present name is `name`.
    func storedKey(named name: String) -> Int? {
      keys.indices.first { keys[$0] == name && entity.keys[$0].storage != nil }
    }
  }

  /// A step about the values of a key. Later renames are applied to its names, which in the end are those of the new
  /// schema.
  struct KeyStep: Sendable {
    let step: Int
    var entity: String
    var key: String
    /// The value to fill in, or the fallback of a conversion.
    var value: Value?
    /// The expression that sets the key; nil for a step of another kind.
    var setting: Setting?
  }

  /// An expression over the objects of an old entity and of the entities that extend it.
  struct Setting: Sendable {
    let expression: KeyExpression
    let source: Entity
  }

  private(set) var entities: [OldEntity]
  private(set) var conversions: [KeyStep] = []
  private(set) var fills: [KeyStep] = []
  private(set) var settings: [KeyStep] = []
  /// The mistakes of steps that name an entity or a key that does not exist, or rename to a name in use.
  private(set) var mistakes: [MigrationObstacle] = []
  private let schema: Schema
  private let steps: [MigrationStep]

  /// Creates the names after `steps`.
  init(of schema: Schema, after steps: [MigrationStep]) {
    self.schema = schema
    self.steps = steps
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
      // The key may exist in the new schema alone, so it is looked up once all names are known.
      fills.append(KeyStep(step: number, entity: entity, key: key, value: value))
    case .set(let entity, let key, let expression):
      guard let position = position(of: entity, step), let setting = setting(expression, position, step) else { return }
      settings.append(KeyStep(step: number, entity: entity, key: key, setting: setting))
    }
  }

  private mutating func rename(_ entity: String, to name: String, _ step: MigrationStep, _ number: Int) {
    guard let position = position(of: entity, step) else { return }
    guard !entities.contains(where: { $0.name == name && $0.droppedBy == nil }) else {
      return report(step, "the entity '\(name)' already exists")
    }
    entities[position].name = name
    entities[position].steps.append(number)
    entities[position].renames.append(number)
    changeKeySteps { if $0.entity == entity { $0.entity = name } }
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
      guard !taken else { return report(step, "\(entities[member].name) already has a key '\(name)'") }
    }
    for member in family {
      entities[member].keys[index] = name
      entities[member].steps.append(number)
    }
    let names = Set(family.map { entities[$0].name })
    changeKeySteps { if names.contains($0.entity), $0.key == key { $0.key = name } }
  }

  private mutating func changeKeySteps(_ change: (inout KeyStep) -> Void) {
    for index in conversions.indices { change(&conversions[index]) }
    for index in fills.indices { change(&fills[index]) }
    for index in settings.indices { change(&settings[index]) }
  }

  private mutating func drop(_ entity: String, _ key: String, _ step: MigrationStep, _ number: Int) {
    guard let position = position(of: entity, step), let index = storedKey(key, in: position, step) else { return }
    for member in family(of: position) where entities[member].keys[index] == key {
      let name = entities[member].name
      if let setting = settings.first(where: { $0.entity == name && $0.key == key }) {
        return report(step, "it drops the values that '\(steps[setting.step])' sets; put this step before that one")
      }
      if let fill = fills.first(where: { $0.entity == name && $0.key == key }) {
        return report(step, "it drops the values that '\(steps[fill.step])' fills; put this step before that one")
      }
      entities[member].keys[index] = nil
      entities[member].steps.append(number)
    }
  }

  // MARK: Expressions

  /// The expression of a step. Nil, with a reported mistake, if it is invalid or reads a key that an earlier step
  /// changes: all expressions read the objects of the old schema.
  private mutating func setting(_ text: String, _ position: Int, _ step: MigrationStep) -> Setting? {
    let present = schemaByNow()
    let expression: KeyExpression
    do throws(KeyExpression.Mistake) {
      expression = try KeyExpression(text, of: present.entities[position], in: present)
    } catch {
      report(step, "column \(error.column) of the expression: \(error.message)")
      return nil
    }
    if let (key, other) = changed(expression.reads, present.entities[position], present) {
      report(step, "it reads '\(key)', which '\(steps[other])' has changed; put this step before that one")
      return nil
    }
    return Setting(expression: expression, source: entities[position].entity)
  }

  /// The old schema with the present names of its keys. Keys whose values were dropped have no usable name.
  private func schemaByNow() -> Schema {
    Schema(
      entities: entities.map { old in
        let keys = old.entity.keys.enumerated().map { index, key in
          Key(
            name: old.keys[index] ?? " \(index)", kind: key.kind, isOptional: key.isOptional, notifying: key.notifying,
            isIndexed: key.isIndexed, storage: key.storage)
        }
        return Entity(
          name: old.entity.name, index: old.entity.index, parent: old.entity.parent, lineage: old.entity.lineage,
          keys: keys, display: [])
      })
  }

  /// The first key among the keys read that an earlier step has changed, with that step.
  private func changed(_ reads: KeyTree, _ entity: Entity, _ schema: Schema) -> (key: String, step: Int)? {
    for branch in reads.branches {
      let key = entity.keys[branch.key]
      if let step = changingStep(of: branch.key, entity) { return ("\(entity.name).\(key.name)", step) }
      if case .computed(let computed) = key.kind, let found = changed(computed.reads, entity, schema) { return found }
      guard let destination = schema.destination(of: key) else { continue }
      let dropping = schema.family(of: destination).compactMap { entities[$0.index].droppedBy }.first
      if let dropping { return ("\(entity.name).\(key.name)", dropping) }
      if let found = changed(branch.behind, destination, schema) { return found }
    }
    return nil
  }

  /// The step that has changed the values of a key or of its inverse.
  private func changingStep(of key: Int, _ entity: Entity) -> Int? {
    var places = [(entity, key)]
    if let relationship = entity.keys[key].relationship, let inverse = relationship.inverseIndex,
      let far = schema.entity(named: relationship.destination)
    {
      places.append((far, inverse))
    }
    let change = (conversions + fills + settings).first { step in
      guard let holder = entities.first(where: { $0.name == step.entity && $0.droppedBy == nil })?.entity else {
        return false
      }
      return places.contains { owner, index in
        entities[owner.index].keys[index] == step.key
          && (owner.isKind(of: holder.name) || holder.isKind(of: owner.name))
      }
    }
    return change?.step
  }

  // MARK: Looking up

  /// An entity of the old schema and the entities that extend it in the old schema; a key has the same index in all of
  /// them.
  private func family(of position: Int) -> [Int] {
    let name = entities[position].entity.name
    return entities.indices.filter { entities[$0].entity.isKind(of: name) }
  }

  private mutating func position(of entity: String, _ step: MigrationStep) -> Int? {
    let position = entities.firstIndex { $0.name == entity && $0.droppedBy == nil }
    if position == nil {
      let hint = NearestName.hint(for: entity, among: entities.filter { $0.droppedBy == nil }.map(\.name))
      report(step, "the data has no entity '\(entity)' at this step\(hint)")
    }
    return position
  }

  private mutating func storedKey(_ key: String, in position: Int, _ step: MigrationStep) -> Int? {
    let entity = entities[position]
    if let index = entity.storedKey(named: key) { return index }
    let hint = NearestName.hint(for: key, among: entity.keys.compactMap(\.self))
    report(
      step,
      !entity.keys.contains(key)
        ? "\(entity.name) has no key '\(key)' at this step\(hint)"
        : "'\(key)' of \(entity.name) is computed; steps are for stored keys only")
    return nil
  }

  /// Records a mistake of a step.
  private mutating func report(_ step: MigrationStep, _ reason: String) {
    mistakes.append(MigrationObstacle(entity: nil, reason: "step '\(step)': \(reason)"))
  }
}
