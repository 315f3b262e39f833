/// The transition from the schema under which data was written to the schema under which it is to be used: the values
/// that are carried over, the obstacles, and the steps that resolve them. Holds no data and changes none.
package struct SchemaEvolution: Sendable {
  /// Every difference between the schemas, in the order of the new one; removed entities come last.
  package let changes: [SchemaChange]
  private let plan: MigrationPlan

  /// Compares two schemas. O(k) for k keys, without any data.
  package init(from old: Schema, to new: Schema, steps: [MigrationStep] = []) {
    plan = MigrationPlan(from: old, to: new, steps: steps)
    changes = SchemaComparison(plan).changes()
  }

  /// Migrates a state of the old schema to the new one, or throws the obstacles. `state` is not changed, so a dry run
  /// is a call whose result is ignored.
  ///
  /// Objects keep `createdAt`. They keep their revision too, unless a step, a default or an inverse that is filled in
  /// changes their values; these get `revision`, which must be greater than that of the state. Takes O(n log n) time.
  /// The new state shares unchanged values with the old one.
  package func migrated(_ state: ModelState, revision: Revision) throws(MigrationRefusal) -> Migration {
    var migration = StateMigration(plan, state, revision: revision)
    return try migration.run(changes: changes)
  }
}

/// A state under a new schema, with a report of the migration.
package struct Migration: Sendable {
  /// The objects under the new schema.
  package let state: ModelState
  /// The report of the migration.
  package let report: MigrationReport
}

/// A summary of what a migration does to the objects.
package struct MigrationReport: Hashable, Sendable, CustomStringConvertible {
  /// A step with the number of objects that it changes.
  package struct Step: Hashable, Sendable, CustomStringConvertible {
    /// The step.
    package let step: MigrationStep
    /// The number of objects that it changes or removes, including objects that merely refer to one of them.
    package internal(set) var objects: Int

    /// The step and the number on one line.
    package var description: String { "\(step): \(objects) \(objects == 1 ? "object" : "objects")" }
  }

  /// The differences between the schemas.
  package let changes: [SchemaChange]
  /// The steps in order.
  package internal(set) var steps: [Step]
  /// The number of objects after the migration.
  package internal(set) var objects = 0
  /// The number of objects that got the new revision.
  package internal(set) var changed = 0
  /// The number of objects that were dropped.
  package internal(set) var removed = 0

  /// One line for each change and step, followed by a line with the totals.
  package var description: String {
    var lines = changes.map { "  \($0)" } + steps.map { "  \($0)" }
    lines.append("\(objects) \(objects == 1 ? "object" : "objects"): \(changed) changed; \(removed) dropped")
    return lines.joined(separator: "\n")
  }
}
