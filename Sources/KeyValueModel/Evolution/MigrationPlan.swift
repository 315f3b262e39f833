import Support

/// The plan for turning objects of an old schema into objects of a new one: the source of each key's value. Made from
/// the two schemas and the steps, without access to the objects.
struct MigrationPlan: Sendable {
  /// The plan for the objects of one old entity.
  struct EntityPlan: Sendable {
    let old: Entity
    /// The entity of the migrated objects; nil if the objects cannot be kept.
    let new: Entity?
    /// The name of the entity after all steps.
    let name: String
    /// The number of the step that drops the objects; nil if none does.
    let droppedBy: Int?
    /// The numbers of the steps that change each object.
    let steps: [Int]
    /// The obstacle for objects that cannot be kept and that no step drops; nil otherwise.
    var removal: MigrationSite?
    /// The sources of the new record's values, by their storage.
    var columns: [Column] = []
    /// Values of the old record that have no place in the new one.
    var lost: [LostKey] = []
    /// True if a record of the new entity has exactly the values of the old record.
    var isVerbatim = false
  }

  /// The source of one stored value.
  struct Column: Sendable {
    enum Source: Sendable {
      /// The old record has no value.
      case fresh
      /// A value of the old record.
      case carried(storage: Int, Key)
      /// A value of the old record that the new key cannot hold. Each such value is an obstacle.
      case conflicting(storage: Int, MigrationSite)
    }

    let key: Key
    let site: MigrationSite
    let source: Source
    /// The key as `Entity.key`, as a step that converts or drops its values names it.
    let place: String
    /// True if the old value is carried over unchanged.
    var isVerbatim = false
    /// True if the value must not be null but may turn out to be.
    var mayLackValue = false
    /// True if both sides of a relationship referred to each other before and still do, so that the migration need not
    /// compare them.
    var isSettled = true
    var conversion: (step: Int, fallback: Value?)?
    /// The values to fill in, in the order of the steps.
    var fills: [(step: Int, value: Value)] = []
    var setting: (step: Int, expression: KeyExpression)?
  }

  /// A stored key that the new schema does not have, or whose values are dropped.
  struct LostKey: Sendable {
    let storage: Int
    /// The obstacle for each of its values; nil if a step drops them.
    let site: MigrationSite?
  }

  let old: Schema
  let new: Schema
  let steps: [MigrationStep]
  /// The plans by the index of the old entity.
  private(set) var entities: [EntityPlan] = []
  /// The mistakes of steps.
  private(set) var mistakes: [MigrationObstacle] = []
  let names: EvolvingNames
  /// The numbers of the conversions that apply to a key.
  private var usedConversions: Set<Int> = []
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
  }

  /// The name of an object under the new schema; nil if the object is not kept. `reference` must belong to the old
  /// schema.
  func name(of reference: Reference) -> Reference? {
    guard let entity = old.entity(of: reference), let new = entities[entity.index].new else { return nil }
    return new.name == entity.name ? reference : Reference(entity: new.name, id: reference.id)
  }

  /// The plan for the objects of a new entity; nil if the entity has no objects yet.
  func plan(for entity: Entity) -> EntityPlan? { positionsByNewEntity[entity.index].map { entities[$0] } }

  /// The column of a key of a new entity; nil if the key is computed, or if the entity has no plan yet.
  func column(ofKey index: Int, in entity: Entity) -> Column? {
    guard let storage = entity.keys[index].storage else { return nil }
    return plan(for: entity)?.columns[storage]
  }

  // MARK: Entities

  private mutating func plan(_ position: Int) {
    let names = names.entities[position]
    guard let new = entities[position].new else {
      guard names.droppedBy == nil else { return }
      entities[position].removal = MigrationSite(
        entityOrder: self.new.entities.count + position, entity: names.name, key: nil, rank: .removal,
        reason: "is not in the new schema", remedy: "`drop \(names.name)`, or `rename \(names.name) NEW`")
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

  /// The stored keys whose values the new entity cannot hold.
  private func lostKeys(_ position: Int, _ new: Entity) -> [LostKey] {
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
      lost.append(LostKey(storage: storage, site: site))
    }
    return lost
  }

  /// The topmost of the old ancestors that lose a key in the same way: the entity in which the key is best dropped.
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

  /// Records a mistake of a step.
  private mutating func report(_ step: Int, _ reason: String) {
    mistakes.append(MigrationObstacle(entity: nil, reason: "step '\(steps[step])': \(reason)"))
  }

  // MARK: Columns: the source of each value of a new record

  private mutating func column(_ index: Int, _ key: Key, of entity: Entity, _ position: Int) -> Column {
    let declaring = new.declaringEntity(of: index, in: entity)
    let conversion = mostSpecific(names.conversions, entity, key.name)
    let site = MigrationSite(declaring, index, key)
    let former = names.entities[position].storedKey(named: key.name)
    let holder = former.map { highestHolder(of: $0, named: key.name, from: position) } ?? declaring.name
    let place = "\(holder).\(key.name)"
    let setting = setting(entity, key, position)
    let isConverted = conversion != nil || setting != nil
    let source = source(of: key, former, at: site, place, position, isConverted: isConverted)
    var column = Column(key: key, site: site, source: source, place: place)
    if case .carried(_, let before) = source {
      if let conversion { column.conversion = (conversion.step, conversion.value) }
      column.isVerbatim = conversion == nil && goesOverAsItIs(before, key)
      column.isSettled = conversion == nil && isSettled(before, key)
      // The other side of a relationship may remove the reference.
      let isKept = column.isVerbatim && !before.isOptional && key.relationship?.inverse == nil
      column.mayLackValue = !key.isOptional && !key.isToMany && !isKept
    } else {
      column.mayLackValue = !key.isOptional && !key.isToMany
      column.isSettled = key.relationship?.inverse == nil
    }
    if let setting {
      column.setting = setting
      column.isVerbatim = false
      column.isSettled = key.relationship?.inverse == nil
      column.mayLackValue = !key.isOptional
    }
    if conversion != nil, case .carried = source {
      for step in names.conversions where step.key == key.name && entity.isKind(of: step.entity) {
        usedConversions.insert(step.step)
      }
    }
    column.fills = fills(entity, key)
    return column
  }

  /// The values to fill in, from the steps that name the most specific entity.
  private func fills(_ entity: Entity, _ key: Key) -> [(step: Int, value: Value)] {
    let steps = names.fills.filter { $0.key == key.name && entity.isKind(of: $0.entity) }
    let lowest = steps.map { depth(of: $0.entity) }.max()
    return steps.filter { depth(of: $0.entity) == lowest }.compactMap { step in
      step.value.flatMap { try? accepted($0, key) }.map { (step.step, $0) }
    }
  }

  /// The expression that sets a key of the objects of an old entity.
  private func setting(_ entity: Entity, _ key: Key, _ position: Int) -> (step: Int, expression: KeyExpression)? {
    let old = names.entities[position].entity
    let steps = names.settings.filter { $0.setting.map { old.isKind(of: $0.source.name) } ?? false }
    guard let step = mostSpecific(steps, entity, key.name), let setting = step.setting else { return nil }
    return (step.step, setting.expression)
  }

  /// Returns the source of a key's value. `former` is the index of the old key with the values; nil if there is none.
  private func source(
    of key: Key, _ former: Int?, at site: MigrationSite, _ place: String, _ position: Int, isConverted: Bool
  ) -> Column.Source {
    guard let former else { return .fresh }
    let before = names.entities[position].entity.keys[former]
    guard let storage = before.storage else { return .fresh }
    guard !isConverted, let old = before.shape, let shape = key.shape, old != shape else {
      return .carried(storage: storage, before)
    }
    return .conflicting(
      storage: storage, site.with(.shape, "\(old) becomes \(shape)", remedy: "`convert \(place)`"))
  }

  /// The name of the topmost old ancestor that has the key at an index and is still an ancestor of the new entity: a
  /// step that names it applies to this entity too.
  private func highestHolder(of index: Int, named name: String, from position: Int) -> String {
    var highest = entities[position]
    while let parent = highest.old.parent.flatMap(old.entity(named:)), parent.keys.indices.contains(index),
      names.entities[parent.index].keys[index] == name, let new = entities[parent.index].new,
      new.indexOfKey(name) != nil, entities[position].new?.isKind(of: new.name) == true
    {
      highest = entities[parent.index]
    }
    return highest.name
  }

  /// The step for a key that names the most specific entity; of several such steps, the last.
  private func mostSpecific(
    _ steps: [EvolvingNames.KeyStep], _ entity: Entity, _ key: String
  ) -> EvolvingNames.KeyStep? {
    steps.filter { $0.key == key && entity.isKind(of: $0.entity) }
      .max { (depth(of: $0.entity), $0.step) < (depth(of: $1.entity), $1.step) }
  }

  private func depth(of entity: String) -> Int { new.entity(named: entity)?.lineage.count ?? 0 }

  // MARK: Comparison of keys, from the schemas alone

  /// Returns true if every value of `before` is a valid value of `key` without a change.
  private func goesOverAsItIs(_ before: Key, _ key: Key) -> Bool {
    guard before.isOrdered == key.isOrdered else { return false }
    if let old = before.valueAttribute, let new = key.valueAttribute {
      return new.isUnconstrained || new.hasSameConstraints(as: old)
    }
    guard let source = before.relationship?.destination, let target = key.relationship?.destination,
      let entity = old.entity(named: source)
    else { return false }
    return old.family(of: entity).allSatisfy { member in
      guard let new = entities[member.index].new else { return false }
      return new.name == member.name && new.isKind(of: target)
    }
  }

  /// Returns true if two keys have the same inverse, by its present name.
  private func isSettled(_ before: Key, _ key: Key) -> Bool {
    guard let relationship = key.relationship, let inverse = relationship.inverse else { return true }
    guard let former = before.relationship, let index = former.inverseIndex,
      let destination = old.entity(named: former.destination)
    else { return false }
    let names = names.entities[destination.index]
    return names.name == relationship.destination && names.keys[index] == inverse
  }

  // MARK: Steps that do not fit the new schema

  /// Reports each conversion of a key that is not stored in the new schema. A conversion of values that another step
  /// drops has no effect and is not a mistake.
  private mutating func checkConversions() {
    for conversion in names.conversions where !usedConversions.contains(conversion.step) {
      if names.entities.contains(where: { $0.name == conversion.entity && $0.droppedBy != nil }) { continue }
      let entity = new.entity(named: conversion.entity)
      let key = entity.flatMap { entity in entity.indexOfKey(conversion.key).map { entity.keys[$0] } }
      guard key?.storage == nil else { continue }
      report(conversion.step, missingKey(conversion, entity))
    }
  }

  /// Reports each set key that is not stored, is a collection, or has a type that the expression's values cannot have.
  private mutating func checkSettings() {
    for step in names.settings {
      guard let expression = step.setting?.expression else { continue }
      guard let key = storedKey(of: step) else { continue }
      if key.isToMany {
        report(step.step, "'\(step.key)' is a collection; 'set' gives one value")
      } else if let type = key.valueType, !type.mayTake(expression.type) {
        report(step.step, "the expression gives \(expression.type.article), and '\(step.key)' takes \(type.article)")
      }
    }
  }

  private mutating func checkFills() {
    for fill in names.fills {
      guard let value = fill.value, let key = storedKey(of: fill) else { continue }
      do throws(Attribute.Refusal) {
        _ = try accepted(value, key)
      } catch {
        report(fill.step, "the value \(error.reason)")
      }
    }
  }

  /// The stored key of the new schema that a step names. Nil, with a reported mistake, if there is none.
  private mutating func storedKey(of step: EvolvingNames.KeyStep) -> Key? {
    guard let entity = new.entity(named: step.entity) else {
      let hint = NearestName.hint(for: step.entity, among: new.entities.map(\.name))
      report(step.step, "the new schema has no entity '\(step.entity)'\(hint)")
      return nil
    }
    guard let index = entity.indexOfKey(step.key), entity.keys[index].storage != nil else {
      report(step.step, missingKey(step, entity))
      return nil
    }
    return entity.keys[index]
  }

  /// Returns the message for a step that does not name a stored key of the new schema.
  private func missingKey(_ step: EvolvingNames.KeyStep, _ entity: Entity?) -> String {
    let keys = entity?.keys.filter { $0.storage != nil }.map(\.name) ?? []
    return "the new schema has no stored key '\(step.key)' in \(step.entity)"
      + NearestName.hint(for: step.key, among: keys)
  }

  /// Returns the value that a fill stores. The existence of an object that it refers to is checked later.
  private func accepted(_ value: Value, _ key: Key) throws(Attribute.Refusal) -> Value {
    switch key.kind {
    case .attribute(let attribute): return try attribute.accepting(value)
    case .toOne(let toOne):
      guard case .string(let text) = value, let target = Reference(text),
        new.entity(of: target)?.isKind(of: toOne.destination) == true
      else { throw Attribute.Refusal(reason: "is not a reference to \(toOne.destination)") }
      return .reference(target)
    case .toMany:
      throw Attribute.Refusal(reason: "cannot be filled in: '\(key.name)' is a collection, which is never null")
    case .computed: throw Attribute.Refusal(reason: "cannot be filled in: '\(key.name)' is computed")
    }
  }
}

/// The kind of values that a stored key has. Between keys of the same shape values are carried over, between others
/// they must be converted.
struct KeyShape: Hashable, Sendable, CustomStringConvertible {
  /// The type of the value, or of the members; nil for references.
  let type: AttributeType?
  let isCollection: Bool

  /// The shape as a word for messages: `number`, `toOne`, `toMany of string`.
  var description: String {
    guard let type else { return isCollection ? "toMany" : "toOne" }
    return isCollection ? "toMany of \(type.rawValue)" : type.rawValue
  }
}

extension Key {
  /// The shape of the stored values; nil for a computed key.
  var shape: KeyShape? {
    switch kind {
    case .attribute(let attribute): KeyShape(type: attribute.type, isCollection: false)
    case .toOne: KeyShape(type: nil, isCollection: false)
    case .toMany(let toMany): KeyShape(type: toMany.valueAttribute?.type, isCollection: true)
    case .computed: nil
    }
  }

  /// The constraints of the value or of the members; nil if they are references.
  var valueAttribute: Attribute? {
    switch kind {
    case .attribute(let attribute): attribute
    case .toMany(let toMany): toMany.valueAttribute
    case .toOne, .computed: nil
    }
  }

  /// True for a collection whose members have positions chosen by the caller.
  var isOrdered: Bool {
    if case .toMany(let toMany) = kind { return toMany.isOrdered }
    return false
  }
}

extension ToMany {
  /// The constraints of the members, if they are values.
  var valueAttribute: Attribute? {
    if case .value(let attribute) = member { return attribute }
    return nil
  }
}

extension ValueType {
  /// Returns true if a key of this type may be set from an expression of another type: a number may be whole, and a
  /// text may be a date.
  fileprivate func mayTake(_ type: ValueType) -> Bool {
    switch (self, type) {
    // An expression of unknown type may give anything.
    case (.attribute(.json), .attribute), (.attribute(.json), .list), (_, .attribute(.json)): true
    case (.attribute(.integer), .attribute(.number)), (.attribute(.number), .attribute(.integer)): true
    case (.attribute(.date), .attribute(.string)), (.attribute(.string), .attribute(.date)): true
    case (.object, .object), (.object, .attribute(.string)): true
    default: self == type
    }
  }
}

extension Schema {
  /// The topmost ancestor that has the key at an index; for a stored key, the entity that declares it.
  fileprivate func declaringEntity(of index: Int, in entity: Entity) -> Entity {
    var declaring = entity
    while let parent = declaring.parent.flatMap(self.entity(named:)), parent.keys.indices.contains(index) {
      declaring = parent
    }
    return declaring
  }
}
