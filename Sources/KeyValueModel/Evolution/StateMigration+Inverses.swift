/// Relationships: both sides name one another in the end.
extension StateMigration {
  /// A key with an inverse, and the keys on the other side.
  private struct Direction {
    let storage: Int
    let inverseIndex: Int
    let holders: [Entity]
  }

  /// Compares the sides of each relationship that is new, or of which one side is. A side that is new is filled from
  /// the other one; where two old sides do not agree, neither is known to be right.
  mutating func reconcileInverses() {
    for direction in directions() {
      for holder in direction.holders.flatMap({ extents[$0.index] }).sorted() {
        guard let value = records[holder]?.values[direction.storage] else { continue }
        let slot = Slot(object: holder, storage: direction.storage)
        for case .reference(let target) in value.elements ?? [value] {
          reconcile(slot, target, direction.inverseIndex)
        }
      }
    }
  }

  /// The relationships of the new schema whose sides have to be compared, each from both sides.
  private func directions() -> [Direction] {
    var directions: [Direction] = []
    for entity in plan.new.entities {
      let inherited = entity.parent.flatMap(plan.new.entity(named:))?.keys.count ?? 0
      for index in inherited..<entity.keys.count {
        guard let relationship = entity.keys[index].relationship, let inverse = relationship.inverseIndex,
          let storage = entity.keys[index].storage, let other = plan.new.entity(named: relationship.destination)
        else { continue }
        let holders = plan.new.family(of: entity)
        let isSettled =
          holders.allSatisfy { keepsInverse($0, index) }
          && plan.new.family(of: other).allSatisfy { keepsInverse($0, inverse) }
        if !isSettled { directions.append(Direction(storage: storage, inverseIndex: inverse, holders: holders)) }
      }
    }
    return directions
  }

  /// An entity that has no objects yet has none that could disagree.
  private func keepsInverse(_ entity: Entity, _ key: Int) -> Bool {
    guard let storage = entity.keys[key].storage, let plan = plan.plan(for: entity) else { return true }
    return plan.columns[storage].isSettled
  }

  /// Sees to it that `target` names the holder.
  private mutating func reconcile(_ slot: Slot, _ target: Reference, _ inverse: Int) {
    guard let record = records[target], let storage = record.entity.keys[inverse].storage,
      let column = plan.plan(for: record.entity)?.columns[storage]
    else { return }
    let value = record.values[storage]
    guard !value.holds(slot.object) else { return }
    let far = Slot(object: target, storage: storage)
    guard !failed.contains(far) else { return }
    let link = Link(holder: slot, target: target)
    if let step = removedLinks[Link(holder: far, target: slot.object)] {
      return release(target, from: slot, by: step)
    }
    var isFresh = true
    if case .carried = column.source { isFresh = false }
    guard isFresh || addedLinks[link] != nil else { return noteDisagreement(slot, target, column) }
    attach(slot.object, to: far, column, by: addedLinks[link])
  }

  private mutating func noteDisagreement(_ slot: Slot, _ target: Reference, _ far: MigrationPlan.Column) {
    guard let entity = records[slot.object]?.entity, let column = plan.plan(for: entity)?.columns[slot.storage] else {
      return
    }
    fail(
      column,
      column.site.with(
        .inverse, "does not agree with its inverse \(far.site.entity).\(far.key.name)",
        remedy: "`drop \(far.place)`, which is then filled from here"),
      slot.object, "names \(target), which does not name it")
  }

  /// `object` is named under a key of another one.
  mutating func attach(_ object: Reference, to far: Slot, _ column: MigrationPlan.Column, by step: Int?) {
    guard var record = records[far.object] else { return }
    switch record.values[far.storage] {
    case .members(var list):
      let old = list
      guard list.insert(.reference(object)) != nil else { return }
      let growth = list.growth(from: old, removed: EmptyCollection(), inserted: CollectionOfOne(.reference(object)))
      record.set(.members(list), at: far.storage, growth: growth)
    case .null: record.set(.reference(object), at: far.storage)
    case let rival:
      // What a step said is for the step to be said otherwise; other values can only go.
      let remedy = step == nil ? records[object].flatMap { place(of: column, in: $0.entity) } : nil
      return fail(
        column,
        column.site.with(
          .inverse, "has room for one object, and more name it", remedy: remedy.map { "`drop \($0)`" }),
        far.object, "is named by \(rival.json) and \"\(object)\"")
    }
    expectedValues += 1
    records[far.object] = record
    touch(far.object, by: step)
  }

  /// How a step names the inverse of a column, in an entity that has it.
  private func place(of column: MigrationPlan.Column, in entity: Entity) -> String? {
    guard let index = column.key.relationship?.inverseIndex, let storage = entity.keys[index].storage else {
      return nil
    }
    return plan.plan(for: entity)?.columns[storage].place
  }

  /// A key of an object no longer names `target`.
  private mutating func release(_ target: Reference, from slot: Slot, by step: Int) {
    guard var record = records[slot.object] else { return }
    if case .members(var list) = record.values[slot.storage] {
      let old = list
      guard list.remove(.reference(target)) != nil else { return }
      let growth = list.growth(from: old, removed: CollectionOfOne(.reference(target)), inserted: EmptyCollection())
      record.set(.members(list), at: slot.storage, growth: growth)
    } else {
      record.set(.null, at: slot.storage)
    }
    expectedValues -= 1
    noteLoss(at: slot, by: step)
    records[slot.object] = record
    touch(slot.object, by: step)
  }

  // MARK: Fills

  /// Gives those a reference that have none, where a step says which.
  mutating func fillRelationships() {
    for entity in plan.entities {
      guard let new = entity.new else { continue }
      for column in entity.columns {
        guard !column.fills.isEmpty, case .toOne(let toOne) = column.key.kind else { continue }
        for object in extents[new.index].sorted() {
          fill(Slot(object: object, storage: column.storage), column, toOne)
        }
      }
    }
  }

  private mutating func fill(_ slot: Slot, _ column: MigrationPlan.Column, _ toOne: ToOne) {
    guard records[slot.object]?.values[slot.storage].isNull == true,
      case (let step, .reference(let target))? = fill(of: slot, column)
    else { return }
    guard let record = records[target] else {
      return fail(
        column, column.site.with(.value, "is to be filled with \(target), which is not there", remedy: nil), slot.object
      )
    }
    records[slot.object]?.set(.reference(target), at: slot.storage)
    expectedValues += 1
    touch(slot.object, by: step)
    guard let inverse = toOne.inverseIndex, let storage = record.entity.keys[inverse].storage,
      let far = plan.plan(for: record.entity)?.columns[storage]
    else { return }
    if records[target]?.values[storage].holds(slot.object) == true { return }
    attach(slot.object, to: Slot(object: target, storage: storage), far, by: step)
  }
}

extension Value {
  /// Whether this is the reference, or a collection that has it.
  fileprivate func holds(_ reference: Reference) -> Bool {
    if case .members(let list) = self { return list.contains(.reference(reference)) }
    return self == .reference(reference)
  }
}
