/// A migration under way: first every object by itself, then the sides of relationships, then what must not be null.
struct StateMigration {
  /// One value of an object of the new state.
  struct Slot: Hashable {
    let object: Reference
    let storage: Int
  }

  /// A side of a relationship.
  struct Link: Hashable {
    let holder: Slot
    let target: Reference
  }

  let plan: MigrationPlan
  let old: ModelState
  let revision: Revision
  var records: [Reference: ObjectRecord]
  /// The objects of each new entity, without those of its subclasses.
  var extents: [[Reference]]
  var tally = ObstacleTally()
  var report: MigrationReport
  /// Where an obstacle was met: what is missing there is no obstacle of its own.
  var failed: Set<Slot> = []
  /// Links that a conversion took away, whose other side is to go too.
  var removedLinks: [Link: Int] = [:]
  /// Links that a step made, whose other side is to come too.
  var addedLinks: [Link: Int] = [:]
  /// The last steps that took a value away.
  var emptied: [Slot: Int] = [:]
  /// Objects that a step changes on both sides of a relationship, so that each is counted once.
  var touched: [Int: Set<Reference>] = [:]
  /// How many values there must be in the end: those that were, without what steps took, with what was filled in.
  var expectedValues = 0

  init(_ plan: MigrationPlan, _ state: ModelState, revision: Revision) {
    self.plan = plan
    old = state
    self.revision = revision
    records = Dictionary(minimumCapacity: state.count)
    extents = Array(repeating: [], count: plan.new.entities.count)
    report = MigrationReport(changes: [], steps: [])
  }

  mutating func run(changes: [SchemaChange]) throws(MigrationRefusal) -> Migration {
    // What stands in the way of objects may be what a step with a mistake was for.
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

  /// Counts an object for a step that changes it after it has been rebuilt.
  mutating func touch(_ object: Reference, by step: Int?) {
    records[object]?.noteSetting(by: revision)
    guard let step, touched[step, default: []].insert(object).inserted else { return }
    report.steps[step].objects += 1
  }

  // MARK: The end

  /// Objects that have nothing where something must be.
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

  /// Counts what there is. A migration that lost something that no step named is a mistake of ours, and must not be
  /// used.
  private func checkNothingIsLost() {
    precondition(
      records.count + report.removed == old.count, "a migration made \(records.count) objects of \(old.count)")
    let values = records.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + $1.heldCount } }
    precondition(values == expectedValues, "a migration has \(values) values where \(expectedValues) should be")
  }
}

/// One object while its values are worked out.
struct ObjectRebuilding {
  /// Its old name.
  let source: Reference
  /// Its new name.
  let name: Reference
  /// The steps that change it so far; one may be named twice.
  var steps: [Int]
  /// Whether it is changed by no step.
  var isChanged = false
}

extension Value {
  /// How many values this is: none of null, the members of a collection.
  var heldCount: Int {
    switch self {
    case .null: 0
    case .members(let list): list.count
    default: 1
    }
  }
}

extension MigrationPlan.Column {
  /// The obstacle that an object is that has no value here.
  var absence: MigrationSite {
    let reason = if case .fresh = source { "is new and must have a value" } else { "must have a value" }
    return site.with(.absence, reason, remedy: "`fill \(site.entity).\(key.name) VALUE`")
  }
}
