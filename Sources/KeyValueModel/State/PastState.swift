/// A past state, derived from the present one and the changes since: the objects at an earlier revision, which can be
/// advanced one operation at a time.
public struct PastState: ObjectReader, Sendable {
  private let present: ModelState
  /// The objects that differ from the present; nil for those that did not exist.
  private var differences = RecordLog()

  /// Creates the state before all of `commits`, which are consecutive and end with the one that made `present`.
  public init(before commits: some BidirectionalCollection<Commit>, of present: ModelState) {
    self.present = present
    for commit in commits.reversed() {
      for (object, record) in commit.before { differences.note(object, record, replacing: true) }
    }
  }

  /// Returns the object as it was, or nil if it did not exist.
  public func record(_ reference: Reference) -> ObjectRecord? {
    if let different = differences[reference] { return different }
    return present.record(reference)
  }

  /// Advances to the state after one operation.
  public mutating func apply(_ step: Commit.Step) {
    for (object, after) in step.writes { differences.note(object, after, replacing: true) }
  }

  /// Advances to the state after a commit.
  package mutating func apply(_ commit: Commit) {
    commit.forEachWrite { differences.note($0, $1, replacing: true) }
  }

  /// Returns the references of the objects of an entity and its subclasses, in no particular order. O(n).
  public func references(of entity: Entity) -> [Reference] {
    var references = present.unorderedReferences(of: entity).filter { differences[$0] == nil }
    for case (let reference, let record?) in differences.entries where record.entity.isKind(of: entity.name) {
      references.append(reference)
    }
    return references
  }

  /// The schema of the objects.
  public var schema: Schema { present.schema }
}

/// The state before the transaction that is changing it.
struct FormerState: ObjectReader {
  /// The former records of the objects that were written.
  let before: RecordLog
  /// The current state.
  let state: ModelState

  func record(_ reference: Reference) -> ObjectRecord? {
    if let former = before[reference] { return former }
    return state.record(reference)
  }
}

/// Records by object, in the order in which the objects were first noted. Up to `searchLimit` objects, as in most
/// transactions, are searched linearly, which needs no hashes and no memory besides their array.
struct RecordLog: Sendable {
  /// The objects, each once; nil for those that do not exist.
  private(set) var entries: [(object: Reference, record: ObjectRecord?)] = []
  /// The indexes of the objects among the entries, filled only if these are more than `searchLimit`.
  private var positions: [Reference: Int] = [:]

  private static let searchLimit = 8

  /// Notes an object. If it was noted before, its record is kept unless `replacing` is true.
  mutating func note(_ object: Reference, _ record: ObjectRecord?, replacing: Bool) {
    if let position = position(of: object) {
      if replacing { entries[position].record = record }
      return
    }
    entries.append((object, record))
    if entries.count > Self.searchLimit { index() }
  }

  /// The record that was noted; nil if the object is not among the entries, `.some(nil)` if it did not exist.
  subscript(object: Reference) -> ObjectRecord?? {
    position(of: object).map { entries[$0].record }
  }

  private func position(of object: Reference) -> Int? {
    if entries.count > Self.searchLimit { return positions[object] }
    return entries.firstIndex { $0.object == object }
  }

  /// Adds the last entry to the positions, or all entries if there are none yet.
  private mutating func index() {
    for position in positions.count..<entries.count { positions[entries[position].object] = position }
  }
}
