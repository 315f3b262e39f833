/// The values of one object under the new schema.
extension StateMigration {
  /// The value of a column for an object.
  mutating func value(
    of column: MigrationPlan.Column, _ record: ObjectRecord, _ rebuilt: inout ObjectRebuilding
  ) -> Value {
    var value: Value
    if let setting = column.setting {
      value = set(column, setting.expression, setting.step, record, &rebuilt)
    } else {
      value = sourceValue(of: column, record, &rebuilt)
    }
    // A relationship is filled when its other side is known.
    let slot = Slot(object: rebuilt.name, storage: column.storage)
    if value.isNull, case .attribute = column.key.kind, let fill = fill(of: slot, column) {
      value = fill.value
      expectedValues += 1
      rebuilt.steps.append(fill.step)
    }
    return value
  }

  /// The value that a step gives to a place that is null, and not by an obstacle: of the steps that find it so, the
  /// first. What a step behind them takes away, or sets, they do not fill.
  func fill(of slot: Slot, _ column: MigrationPlan.Column) -> (step: Int, value: Value)? {
    guard !failed.contains(slot) else { return nil }
    let emptied = max(emptied[slot] ?? -1, column.setting?.step ?? -1)
    return column.fills.first { $0.step > emptied }
  }

  /// Notes that a step has taken a value away.
  mutating func noteLoss(at slot: Slot, by step: Int) { emptied[slot] = max(emptied[slot] ?? step, step) }

  private mutating func sourceValue(
    of column: MigrationPlan.Column, _ record: ObjectRecord, _ rebuilt: inout ObjectRebuilding
  ) -> Value {
    var value: Value
    switch column.source {
    case .fresh:
      value = column.fills.isEmpty ? column.key.defaultValue : column.key.emptyValue
      if value.heldCount > 0 {
        rebuilt.isChanged = true
        expectedValues += 1
      }
    case .conflicting(let storage, let site):
      value = column.key.emptyValue
      if record.values[storage].heldCount > 0 {
        fail(column, site, rebuilt.name)
      }
    case .carried(let storage, let before):
      value = record.values[storage]
      if !column.isVerbatim { value = carried(value, before, column, &rebuilt) }
    }
    return value
  }

  /// An old value as the new key has it: references by their new names, members in their new order, everything under
  /// the new constraints.
  private mutating func carried(
    _ value: Value, _ before: Key, _ column: MigrationPlan.Column, _ rebuilt: inout ObjectRebuilding
  ) -> Value {
    var elements: [Value] = []
    let slot = Slot(object: rebuilt.name, storage: column.storage)
    for element in before.isToMany ? Array(value.elements ?? []) : value.isNull ? [] : [value] {
      guard let present = renamed(element, slot, &rebuilt) else {
        expectedValues -= 1
        continue
      }
      do throws(Attribute.Refusal) {
        elements.append(try accepted(present, column))
      } catch {
        guard let conversion = column.conversion, let fallback = conversion.fallback else {
          fail(column, column.misfit(of: before), rebuilt.name, error.reason)
          continue
        }
        replace(present, by: fallback, conversion.step, slot, column, &elements, &rebuilt)
      }
    }
    let new = assembled(elements, before, column, rebuilt.name)
    if let conversion = column.conversion, new != value, !failed.contains(slot) {
      rebuilt.steps.append(conversion.step)
    }
    return new
  }

  /// A value that cannot be converted becomes what the step says instead.
  private mutating func replace(
    _ value: Value, by fallback: Value, _ step: Int, _ slot: Slot, _ column: MigrationPlan.Column,
    _ elements: inout [Value], _ rebuilt: inout ObjectRebuilding
  ) {
    rebuilt.steps.append(step)
    touched[step, default: []].insert(slot.object)
    if case .reference(let target) = value, column.key.relationship != nil {
      removedLinks[Link(holder: slot, target: target)] = step
    }
    guard !fallback.isNull else {
      noteLoss(at: slot, by: step)
      expectedValues -= 1
      return
    }
    do throws(Attribute.Refusal) {
      let accepted = try accepted(fallback, column)
      elements.append(accepted)
      if case .reference(let target) = accepted { addedLinks[Link(holder: slot, target: target)] = step }
    } catch {
      fail(
        column, column.site.with(.value, "the value of 'convert … or' \(error.reason)", remedy: nil), rebuilt.name)
    }
  }

  /// The value of the key with these elements.
  private mutating func assembled(
    _ elements: [Value], _ before: Key, _ column: MigrationPlan.Column, _ object: Reference
  ) -> Value {
    let place = column.place
    guard case .toMany(let toMany) = column.key.kind else {
      if elements.count > 1 {
        fail(
          column, column.site.with(.value, "has room for one value", remedy: "`drop \(place)`"), object,
          "has \(elements.count)")
      }
      return elements.first ?? .null
    }
    let list = MemberList(elements, isOrdered: toMany.isOrdered)
    if list.count < elements.count {
      fail(
        column, column.site.with(.value, "members become equal, and members are unique", remedy: "`drop \(place)`"),
        object)
    }
    if before.isOrdered, !toMany.isOrdered, column.conversion == nil, !list.elementsEqual(elements) {
      fail(
        column,
        column.site.with(
          .order, "is no longer ordered, and the order of its members would be lost", remedy: "`convert \(place)`"),
        object)
    }
    return .members(list)
  }

  // MARK: Elements

  /// A reference by its new name; nil where its object goes. Everything else as it is.
  private mutating func renamed(_ value: Value, _ slot: Slot, _ rebuilt: inout ObjectRebuilding) -> Value? {
    guard case .reference(let target) = value, let entity = plan.old.entity(of: target) else { return value }
    let names = plan.names.entities[entity.index]
    if let step = names.droppedBy {
      rebuilt.steps.append(step)
      noteLoss(at: slot, by: step)
      return nil
    }
    // That an entity is not in the new schema is an obstacle of its own, and a key that loses its objects by that has
    // none.
    guard let name = plan.name(of: target) else {
      failed.insert(slot)
      return nil
    }
    if name != target { rebuilt.steps += names.renames }
    return .reference(name)
  }

  /// An element in the form of the new key. Of references, those of objects that will be there.
  private func accepted(_ value: Value, _ column: MigrationPlan.Column) throws(Attribute.Refusal) -> Value {
    if let attribute = column.key.valueAttribute {
      return try column.conversion == nil ? attribute.accepting(value) : attribute.converted(value)
    }
    guard let destination = column.key.relationship?.destination else { return value }
    var target: Reference?
    switch value {
    case .reference(let reference): target = reference
    case .string(let text) where column.conversion != nil:
      target = Reference(text).map { old.record($0) == nil ? $0 : plan.name(of: $0) ?? $0 }
    default: break
    }
    guard let target, plan.new.entity(of: target)?.isKind(of: destination) == true else {
      throw Attribute.Refusal(reason: "names \(value.text), which is no \(destination)")
    }
    guard exists(target) else { throw Attribute.Refusal(reason: "names \(target), which is not there") }
    return .reference(target)
  }

  /// Whether an object will be there, by its new name, also before it has been rebuilt.
  func exists(_ target: Reference) -> Bool {
    guard let entity = plan.new.entity(of: target), let source = plan.plan(for: entity)?.old else {
      return false
    }
    return Reference(entity: source.name, id: target.id).map { old.record($0) != nil } ?? false
  }

  /// Notes an obstacle at an object.
  mutating func fail(
    _ column: MigrationPlan.Column, _ site: MigrationSite, _ object: Reference, _ reason: String? = nil
  ) {
    // An object with many members that do not fit is one object.
    guard failed.insert(Slot(object: object, storage: column.storage)).inserted else { return }
    tally.note(site, object, reason)
  }
}

extension MigrationPlan.Column {
  /// Where the value stands in a new record.
  var storage: Int { key.storage ?? 0 }

  /// The obstacle that a value is that the new key does not take.
  func misfit(of before: Key) -> MigrationSite {
    let alternative = key.isOptional || key.isToMany ? "null" : "VALUE"
    let remedy = "`convert \(place) or \(alternative)`"
    if key.relationship != nil { return site.with(.value, "leads elsewhere now", remedy: remedy) }
    guard before.shape == key.shape else {
      return site.with(.value, "has values that cannot be converted", remedy: remedy)
    }
    return site.with(.value, "has values that break the new constraints", remedy: remedy)
  }
}

extension Value {
  /// A text without quotation marks, for sentences; other values as JSON.
  fileprivate var text: String {
    if case .string(let text) = self { return text }
    if case .reference(let reference) = self { return reference.text }
    return json
  }
}
