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

/// The state as it was before the transaction that is changing it.
struct FormerState: ObjectReader {
  /// What stood there of the objects that were written.
  let before: RecordLog
  /// The state as it is by now.
  let state: ModelState

  func record(_ reference: Reference) -> ObjectRecord? {
    if let former = before[reference] { return former }
    return state.record(reference)
  }
}

/// Objects with a record of each, in the order in which they were first noted. Few objects, which is what most
/// transactions write, are searched one by one: that costs no hash and no more memory than their array.
struct RecordLog: Sendable {
  /// The objects, each once; nil for those that are not there.
  private(set) var entries: [(object: Reference, record: ObjectRecord?)] = []
  /// Where each object stands among the entries, once these are more than `searchLimit`.
  private var positions: [Reference: Int] = [:]

  private static let searchLimit = 8

  /// Notes an object. One that is noted already keeps its record unless it is to be replaced.
  mutating func note(_ object: Reference, _ record: ObjectRecord?, replacing: Bool) {
    if let position = position(of: object) {
      if replacing { entries[position].record = record }
      return
    }
    entries.append((object, record))
    if entries.count > Self.searchLimit { index() }
  }

  /// The record that was noted; nil where the object is not among the entries, `.some(nil)` where it was not there.
  subscript(object: Reference) -> ObjectRecord?? {
    position(of: object).map { entries[$0].record }
  }

  private func position(of object: Reference) -> Int? {
    if entries.count > Self.searchLimit { return positions[object] }
    return entries.firstIndex { $0.object == object }
  }

  /// Takes the last entry into the positions, or all where there are none yet.
  private mutating func index() {
    for position in positions.count..<entries.count { positions[entries[position].object] = position }
  }
}
