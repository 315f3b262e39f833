/// The way from the schema under which data was written to the one under which it is to be used: what goes by itself,
/// what stands in the way, and what steps do about that. Holds no data and changes none.
package struct SchemaEvolution: Sendable {
  /// Every difference between the schemas, in the order of the new one; what is gone comes last.
  package let changes: [SchemaChange]
  private let plan: MigrationPlan

  /// Compares two schemas. O(keys), without any data.
  package init(from old: Schema, to new: Schema, steps: [MigrationStep] = []) {
    plan = MigrationPlan(from: old, to: new, steps: steps)
    changes = SchemaComparison(plan).changes()
  }

  /// The state of the old schema as one of the new, or why it cannot be. `state` stays as it is: a dry run is this
  /// without a use of what it gives.
  ///
  /// Objects keep `createdAt` and, unless a step, a default or a far side that is filled in changes what they hold,
  /// their revision; the others get `revision`, which must be greater than that of the state. O(n log n) in time; the
  /// new state shares with the old one the values that have not changed.
  package func migrated(_ state: ModelState, revision: Revision) throws(MigrationRefusal) -> Migration {
    var migration = StateMigration(plan, state, revision: revision)
    return try migration.run(changes: changes)
  }
}

/// A state under a new schema, with what it took.
package struct Migration: Sendable {
  /// The objects under the new schema.
  package let state: ModelState
  /// What was done.
  package let report: MigrationReport
}

/// What a migration does to the objects.
package struct MigrationReport: Hashable, Sendable, CustomStringConvertible {
  /// A step with how many objects it changes.
  package struct Step: Hashable, Sendable, CustomStringConvertible {
    /// The step.
    package let step: MigrationStep
    /// The objects that it changes or takes away, those included that merely name one of them.
    package internal(set) var objects: Int

    /// Step and number in a line.
    package var description: String { "\(step): \(objects) \(objects == 1 ? "object" : "objects")" }
  }

  /// How the schemas differ.
  package let changes: [SchemaChange]
  /// The steps in order.
  package internal(set) var steps: [Step]
  /// How many objects there are now.
  package internal(set) var objects = 0
  /// How many of them got the new revision.
  package internal(set) var changed = 0
  /// How many were dropped.
  package internal(set) var removed = 0

  /// A line for each change and step, and one with the numbers.
  package var description: String {
    var lines = changes.map { "  \($0)" } + steps.map { "  \($0)" }
    lines.append("\(objects) \(objects == 1 ? "object" : "objects"): \(changed) changed; \(removed) dropped")
    return lines.joined(separator: "\n")
  }
}
