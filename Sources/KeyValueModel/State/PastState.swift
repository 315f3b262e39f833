/// A state seen through the changes that were made since: what the objects were at an earlier revision, and, one
/// operation after the other, how they became what they are.
public struct PastState: ObjectReader, Sendable {
  private let present: ModelState
  /// Objects that differ from the present; nil for those that were not there.
  private var differences = RecordLog()

  /// The state before all of `commits`, which are consecutive and end with the one that made `present`.
  public init(before commits: some BidirectionalCollection<Commit>, of present: ModelState) {
    self.present = present
    for commit in commits.reversed() {
      for (object, record) in commit.before { differences.note(object, record, replacing: true) }
    }
  }

  /// The object as it was, nil where it was not there.
  public func record(_ reference: Reference) -> ObjectRecord? {
    if let different = differences[reference] { return different }
    return present.record(reference)
  }

  /// Goes on to the state after one operation.
  public mutating func apply(_ step: Commit.Step) {
    for (object, after) in step.writes { differences.note(object, after, replacing: true) }
  }

  /// Goes on to the state after a commit.
  package mutating func apply(_ commit: Commit) {
    commit.forEachWrite { differences.note($0, $1, replacing: true) }
  }

  /// The references of an entity's objects, those of its subclasses included, in no order. O(n).
  public func references(of entity: Entity) -> [Reference] {
    var references = present.unorderedReferences(of: entity).filter { differences[$0] == nil }
    for case (let reference, let record?) in differences.entries where record.entity.isKind(of: entity.name) {
      references.append(reference)
    }
    return references
  }

  /// What the objects are.
  public var schema: Schema { present.schema }
}
