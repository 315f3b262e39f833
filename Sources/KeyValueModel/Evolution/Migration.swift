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

  /// Whether anything is different that an observer could have seen: then the migration takes the revision that it was
  /// given; otherwise the state is still of the one before.
  package var usesRevision: Bool { changed > 0 || removed > 0 }

  /// A line for each change and step, and one with the numbers.
  package var description: String {
    var lines = changes.map { "  \($0)" } + steps.map { "  \($0)" }
    lines.append("\(objects) \(objects == 1 ? "object" : "objects"): \(changed) changed; \(removed) dropped")
    return lines.joined(separator: "\n")
  }
}
