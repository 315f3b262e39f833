import CEL

/// A migration in progress: it migrates each object by itself, then reconciles the sides of relationships, then finds
/// missing values.
struct StateMigration {
  /// The place of one value of an object in the new state.
  private struct Slot: Hashable {
    let object: Reference
    let storage: Int
  }

  /// A side of a relationship.
  private struct Link: Hashable {
    let holder: Slot
    let target: Reference
  }

  private let plan: MigrationPlan
  private let old: ModelState
  private let revision: Revision
  private var records: [Reference: ObjectRecord]
  /// The objects of each new entity, by the entity's index, without those of its subclasses.
  private var extents: [[Reference]]
  private var tally = ObstacleTally()
  private var report: MigrationReport
  /// The places at which an obstacle was found: a missing value at such a place is not another obstacle.
  private var failed: Set<Slot> = []
  /// The links that a step removed, with the step: their other side must be removed too.
  private var removedLinks: [Link: Int] = [:]
  /// The links that a step added, with the step: their other side must be added too.
  private var addedLinks: [Link: Int] = [:]
  /// The last step that removed a value at each place.
  private var emptied: [Slot: Int] = [:]
  /// The objects that each step changes through relationships, so that an object changed on both sides is counted once.
  private var touched: [Int: Set<Reference>] = [:]
  /// The expected number of values at the end: the old values, without those that steps removed, plus those filled in.
  private var expectedValues = 0

  init(_ plan: MigrationPlan, _ state: ModelState, revision: Revision) {
    self.plan = plan
    old = state
    self.revision = revision
    records = Dictionary(minimumCapacity: state.count)
    extents = Array(repeating: [], count: plan.new.entities.count)
    report = MigrationReport(changes: [], steps: [])
  }

  mutating func run(changes: [SchemaChange]) throws(MigrationRefusal) -> Migration {
    // An obstacle in the objects may be one that a step with a mistake was meant to resolve.
    guard plan.mistakes.isEmpty else { throw MigrationRefusal(plan.mistakes) }
    report = MigrationReport(changes: changes, steps: plan.steps.map { .init(step: $0, objects: 0) })
    for (reference, record) in old.all { migrate(reference, record) }
    reconcileInverses()
    fillRelationships()
    noteAbsences()
    guard tally.isEmpty else { throw MigrationRefusal(tally.all) }
    checkNothingIsLost()
    report.objects = records.count
    report.changed = records.values.count { $0.revision == revision }
    let state = ModelState(
      restoring: records.lazy.map { (reference: $0.key, record: $0.value) }, schema: plan.new)
    return Migration(state: state, report: report)
  }

  // MARK: Objects

  private mutating func migrate(_ reference: Reference, _ record: ObjectRecord) {
    let plan = plan.entities[record.entity.index]
    guard let new = plan.new, let name = self.plan.name(of: reference) else {
      if let removal = plan.removal { tally.note(removal, reference) }
      guard let step = plan.droppedBy else { return }
      report.steps[step].objects += 1
      report.removed += 1
      return
    }
    for value in record.values { expectedValues += value.heldCount }
    extents[new.index].append(name)
    var rebuilt = ObjectRebuilding(source: reference, name: name, steps: plan.steps)
    var values = Array(record.values)
    if !plan.isVerbatim {
      values.removeAll(keepingCapacity: true)
      for column in plan.columns { values.append(value(of: column, record, &rebuilt)) }
      for lost in plan.lost { lose(record.values[lost.storage], lost, &rebuilt) }
    }
    for step in Set(rebuilt.steps) { report.steps[step].objects += 1 }
    let isChanged = rebuilt.isChanged || !rebuilt.steps.isEmpty
    records[name] = ObjectRecord(
      name, entity: new, revision: isChanged ? revision : record.revision, createdAt: record.createdAt,
      values: values, lease: record.lease)
  }

  private mutating func lose(_ value: Value, _ lost: MigrationPlan.LostKey, _ rebuilt: inout ObjectRebuilding) {
    guard value.heldCount > 0 else { return }
    expectedValues -= value.heldCount
    if let site = lost.site { tally.note(site, rebuilt.name) }
  }

  /// Sets the revision of an object that changes after it was rebuilt, and counts the object for the step.
  private mutating func touch(_ object: Reference, by step: Int?) {
    records[object]?.noteSetting(by: revision)
    guard let step, touched[step, default: []].insert(object).inserted else { return }
    report.steps[step].objects += 1
  }

  // MARK: The end

  /// Records an obstacle for each missing value that must not be null.
  private mutating func noteAbsences() {
    for entity in plan.entities {
      guard let new = entity.new else { continue }
      let wanting = entity.columns.enumerated().filter { $1.mayLackValue }
      guard !wanting.isEmpty else { continue }
      for object in extents[new.index] {
        guard let record = records[object] else { continue }
        for (storage, column) in wanting where record.values[storage].isNull {
          if !failed.contains(Slot(object: object, storage: storage)) { tally.note(column.absence, object) }
        }
      }
    }
  }

  /// Checks the numbers of objects and values. A migration that lost something that no step named has a programming
  /// error, and its result must not be used.
  private func checkNothingIsLost() {
    precondition(
      records.count + report.removed == old.count, "a migration made \(records.count) objects of \(old.count)")
    let values = records.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + $1.heldCount } }
    precondition(values == expectedValues, "a migration has \(values) values where \(expectedValues) should be")
  }

  // MARK: Values of one object

  /// The value of a column for an object.
  private mutating func value(
    of column: MigrationPlan.Column, _ record: ObjectRecord, _ rebuilt: inout ObjectRebuilding
  ) -> Value {
    var value: Value
    if let setting = column.setting {
      value = set(column, setting.expression, setting.step, record, &rebuilt)
    } else {
      value = sourceValue(of: column, record, &rebuilt)
    }
    // Relationships are filled later, when the other side is known.
    let slot = Slot(object: rebuilt.name, storage: column.storage)
    if value.isNull, case .attribute = column.key.kind, let fill = fill(of: slot, column) {
      value = fill.value
      expectedValues += 1
      rebuilt.steps.append(fill.step)
    }
    return value
  }

  /// The value that a step fills into a place that is null, other than because of an obstacle: of the steps that find
  /// it null, the first applies. A step does not fill a value that a later step removes or sets.
  private func fill(of slot: Slot, _ column: MigrationPlan.Column) -> (step: Int, value: Value)? {
    guard !failed.contains(slot) else { return nil }
    let emptied = max(emptied[slot] ?? -1, column.setting?.step ?? -1)
    return column.fills.first { $0.step > emptied }
  }

  /// Records that a step removed a value.
  private mutating func noteLoss(at slot: Slot, by step: Int) { emptied[slot] = max(emptied[slot] ?? step, step) }

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

  /// Returns an old value in the form of the new key: references by their new names, members in their new order,
  /// everything under the new constraints.
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

  /// Replaces a value that cannot be converted by the fallback of the step.
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

  /// Returns the value of the key with these elements.
  private mutating func assembled(
    _ elements: [Value], _ before: Key, _ column: MigrationPlan.Column, _ object: Reference
  ) -> Value {
    let place = column.place
    guard case .toMany(let toMany) = column.key.kind else {
      if elements.count > 1 {
        fail(
          column, column.site.with(.value, "can hold only one value", remedy: "`drop \(place)`"), object,
          "has \(elements.count)")
      }
      return elements.first ?? .null
    }
    let list = MemberList(elements, isOrdered: toMany.isOrdered)
    if list.count < elements.count {
      fail(
        column, column.site.with(.value, "members become equal, but must be unique", remedy: "`drop \(place)`"),
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

  /// Returns a reference by its new name, or nil if its object is not kept. Returns any other value unchanged.
  private mutating func renamed(_ value: Value, _ slot: Slot, _ rebuilt: inout ObjectRebuilding) -> Value? {
    guard case .reference(let target) = value, let entity = plan.old.entity(of: target) else { return value }
    let names = plan.names.entities[entity.index]
    if let step = names.droppedBy {
      rebuilt.steps.append(step)
      noteLoss(at: slot, by: step)
      return nil
    }
    // An entity missing in the new schema is an obstacle of its own; a key that loses its objects by that is not
    // another one.
    guard let name = plan.name(of: target) else {
      failed.insert(slot)
      return nil
    }
    if name != target { rebuilt.steps += names.renames }
    return .reference(name)
  }

  /// Returns an element in the form of the new key. A reference must name an object that exists after the migration.
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
      throw Attribute.Refusal(reason: "names \(value.text), which is not an object of \(destination)")
    }
    guard exists(target) else { throw Attribute.Refusal(reason: "names \(target), which does not exist") }
    return .reference(target)
  }

  /// Returns true if an object exists after the migration, by its new name. Works before the object is rebuilt, too.
  private func exists(_ target: Reference) -> Bool {
    guard let entity = plan.new.entity(of: target), let source = plan.plan(for: entity)?.old else {
      return false
    }
    return Reference(entity: source.name, id: target.id).map { old.record($0) != nil } ?? false
  }

  /// Records an obstacle at an object.
  private mutating func fail(
    _ column: MigrationPlan.Column, _ site: MigrationSite, _ object: Reference, _ reason: String? = nil
  ) {
    // An object is counted once, however many of its members do not fit.
    guard failed.insert(Slot(object: object, storage: column.storage)).inserted else { return }
    tally.note(site, object, reason)
  }

  // MARK: Settings: values that a step computes

  /// Returns the value of an expression for an object of the old state, in the form of the new key. A failure, or a
  /// value that the key does not accept, is an obstacle.
  private mutating func set(
    _ column: MigrationPlan.Column, _ expression: KeyExpression, _ step: Int, _ record: ObjectRecord,
    _ rebuilt: inout ObjectRebuilding
  ) -> Value {
    let slot = Slot(object: rebuilt.name, storage: column.storage)
    let former = formerValue(of: column, record)
    expectedValues -= former.heldCount
    for case .reference(let target) in former.elements ?? [former] {
      if let name = plan.name(of: target) { removedLinks[Link(holder: slot, target: name)] = step }
    }
    let value: Value
    do throws(Attribute.Refusal) {
      value = try self.value(of: expression, column, rebuilt.source, record)
    } catch {
      let site = column.site.with(.value, "cannot be set by '\(plan.steps[step])'", remedy: nil)
      fail(column, site, rebuilt.name, error.reason)
      return .null
    }
    if case .reference(let target) = value {
      let link = Link(holder: slot, target: target)
      if removedLinks.removeValue(forKey: link) == nil { addedLinks[link] = step }
    }
    expectedValues += value.heldCount
    if value != former { rebuilt.steps.append(step) }
    return value
  }

  private func formerValue(of column: MigrationPlan.Column, _ record: ObjectRecord) -> Value {
    if case .carried(let storage, _) = column.source { record.values[storage] } else { .null }
  }

  /// Evaluates an expression for one object, with the budget of one expression.
  private func value(
    of expression: KeyExpression, _ column: MigrationPlan.Column, _ object: Reference, _ record: ObjectRecord
  ) throws(Attribute.Refusal) -> Value {
    var budget = EvaluationBudget(ExpressionLimits())
    let evaluated: ExpressionValue
    do throws(EvaluationError) {
      evaluated = try EvaluationPass(reader: old).result(of: expression, object, record, budget: &budget).get()
    } catch {
      throw Attribute.Refusal(reason: "fails: \(error.message)")
    }
    // References inside a JSON value become strings.
    let isJSON = column.key.valueAttribute?.type == .json
    guard let plain = Value(evaluated, as: nil), let value = isJSON ? try? Value(json: plain.json) : plain else {
      throw Attribute.Refusal(reason: "gives a value that JSON cannot represent")
    }
    guard !value.isNull else { return .null }
    if let attribute = column.key.valueAttribute { return try attribute.accepting(value) }
    return .reference(try target(value, column))
  }

  /// Returns the object that a value names, by its new name. The expression names objects by their old names.
  private func target(_ value: Value, _ column: MigrationPlan.Column) throws(Attribute.Refusal) -> Reference {
    let named: Reference? =
      switch value {
      case .reference(let reference): reference
      case .string(let text): Reference(text)
      default: nil
      }
    guard let destination = column.key.relationship?.destination,
      let target = named.flatMap({ old.record($0) == nil ? $0 : plan.name(of: $0) }),
      plan.new.entity(of: target)?.isKind(of: destination) == true
    else { throw Attribute.Refusal(reason: "gives \(value.json), which the key does not take") }
    guard exists(target) else { throw Attribute.Refusal(reason: "gives \(target), which does not exist") }
    return target
  }

  // MARK: Inverses: both sides must refer to each other

  /// A stored key with an inverse, the index of the inverse, and the entities whose objects have the key.
  private struct Direction {
    let storage: Int
    let inverseIndex: Int
    let holders: [Entity]
  }

  /// Reconciles the sides of each relationship that is new or has a new side. A new side is filled from the other one.
  /// If two old sides disagree, neither is known to be right: that is an obstacle.
  private mutating func reconcileInverses() {
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

  /// The relationships of the new schema whose sides must be compared, each in both directions.
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

  /// Returns true if a key's inverse is the same as before. True for an entity that has no objects yet: none can
  /// disagree.
  private func keepsInverse(_ entity: Entity, _ key: Int) -> Bool {
    plan.column(ofKey: key, in: entity)?.isSettled ?? true
  }

  /// Makes `target` refer back to the holder of `slot`, removes the reference to it, or records a disagreement.
  private mutating func reconcile(_ slot: Slot, _ target: Reference, _ inverse: Int) {
    guard let record = records[target], let column = plan.column(ofKey: inverse, in: record.entity) else { return }
    let far = Slot(object: target, storage: column.storage)
    guard !record.values[far.storage].holds(slot.object), !failed.contains(far) else { return }
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

  /// Adds a reference to `object` at `far`, a key of another object.
  private mutating func attach(_ object: Reference, to far: Slot, _ column: MigrationPlan.Column, by step: Int?) {
    guard var record = records[far.object] else { return }
    switch record.values[far.storage] {
    case .members(var list):
      let old = list
      guard list.insert(.reference(object)) != nil else { return }
      let growth = list.growth(from: old, removed: EmptyCollection(), inserted: CollectionOfOne(.reference(object)))
      record.set(.members(list), at: far.storage, growth: growth)
    case .null: record.set(.reference(object), at: far.storage)
    case let rival:
      // If a step made the reference, the step must be corrected; otherwise the values can only be dropped.
      let remedy = step == nil ? records[object].flatMap { place(of: column, in: $0.entity) } : nil
      return fail(
        column,
        column.site.with(
          .inverse, "can hold only one object, but several name it", remedy: remedy.map { "`drop \($0)`" }),
        far.object, "is named by \(rival.json) and \"\(object)\"")
    }
    expectedValues += 1
    records[far.object] = record
    touch(far.object, by: step)
  }

  /// The inverse of a column as a step names it, in an entity that has it.
  private func place(of column: MigrationPlan.Column, in entity: Entity) -> String? {
    column.key.relationship?.inverseIndex.flatMap { plan.column(ofKey: $0, in: entity)?.place }
  }

  /// Removes the reference to `target` from a key of an object.
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

  /// Gives a reference to objects without one, as the steps that fill the key specify.
  private mutating func fillRelationships() {
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
        column, column.site.with(.value, "is filled with \(target), which does not exist", remedy: nil), slot.object)
    }
    records[slot.object]?.set(.reference(target), at: slot.storage)
    expectedValues += 1
    touch(slot.object, by: step)
    guard let far = toOne.inverseIndex.flatMap({ plan.column(ofKey: $0, in: record.entity) }) else { return }
    if records[target]?.values[far.storage].holds(slot.object) == true { return }
    attach(slot.object, to: Slot(object: target, storage: far.storage), far, by: step)
  }
}

/// One object while it is being rebuilt.
private struct ObjectRebuilding {
  /// Its old name.
  let source: Reference
  /// Its new name.
  let name: Reference
  /// The steps that change it so far; a step may occur twice.
  var steps: [Int]
  /// True if the object changes without a step: a default was filled in.
  var isChanged = false
}

extension MigrationPlan.Column {
  /// The place of the value in a new record.
  fileprivate var storage: Int { key.storage ?? 0 }

  /// The obstacle for a value that the new key does not accept.
  fileprivate func misfit(of before: Key) -> MigrationSite {
    let alternative = key.isOptional || key.isToMany ? "null" : "VALUE"
    let remedy = "`convert \(place) or \(alternative)`"
    if key.relationship != nil { return site.with(.value, "has values that the key cannot hold", remedy: remedy) }
    guard before.shape == key.shape else {
      return site.with(.value, "has values that cannot be converted", remedy: remedy)
    }
    return site.with(.value, "has values that break the new constraints", remedy: remedy)
  }

  /// The obstacle for an object without a value for this key.
  fileprivate var absence: MigrationSite {
    let reason = if case .fresh = source { "is new and must have a value" } else { "must have a value" }
    return site.with(.absence, reason, remedy: "`fill \(site.entity).\(key.name) VALUE`")
  }
}

extension Value {
  /// The number of values: 0 for null, the number of members for a collection, 1 for everything else.
  fileprivate var heldCount: Int {
    switch self {
    case .null: 0
    case .members(let list): list.count
    default: 1
    }
  }

  /// The value for messages: a string without quotation marks, anything else as JSON.
  fileprivate var text: String {
    if case .string(let text) = self { return text }
    if case .reference(let reference) = self { return reference.text }
    return json
  }

  /// Returns true if this is the reference, or a collection that contains it.
  fileprivate func holds(_ reference: Reference) -> Bool {
    if case .members(let list) = self { return list.contains(.reference(reference)) }
    return self == .reference(reference)
  }
}
