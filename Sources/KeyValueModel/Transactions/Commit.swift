/// The effects of a transaction: enough to go from the state before it to the state after it, one operation at a time,
/// and back.
public struct Commit: Sendable {
  /// A key of an object that an operation set.
  public struct KeyChange: Hashable, Sendable {
    /// The object that holds the key.
    public let object: Reference
    /// The index of the key in its entity.
    public let key: Int
    /// True if the key's `notifies` kept it silent: observers are not notified, but paths through the key lead
    /// elsewhere.
    public internal(set) var isSilent: Bool
    /// The change of the members if the key is a collection and the operation did not set it as a whole; nil otherwise.
    public internal(set) var collection: CollectionChange?
    /// The number of members of a collection that was set as a whole; 0 for everything else.
    var memberCount = 0
  }

  /// Members of a collection that were inserted, removed or replaced (KVO guide, "Indexed To-Many Compliance").
  public struct CollectionChange: Hashable, Sendable {
    /// The kind, as in change dictionaries.
    public enum Kind: String, Hashable, Sendable {
      /// Members were inserted.
      case insertion
      /// Members were removed.
      case removal
      /// Members were replaced by others.
      case replacement
    }

    /// The kind of change.
    public let kind: Kind
    /// The indexes, ascending: after the operation for an insertion, before it for a removal; nil if the collection is
    /// not ordered.
    public let indexes: [Int]?
    /// The removed members, in order.
    public let removed: [Value]
    /// The inserted members, in order.
    public let inserted: [Value]
  }

  /// The effects of one operation.
  public struct Step: Sendable {
    /// The kind of operation, as far as it matters to observers.
    public enum Kind: Sendable {
      /// The operation set these keys, in this order.
      case change([KeyChange])
      /// The operation opened a bracket around a key.
      case willChange(Reference, key: Int)
      /// The operation closed the bracket around a key.
      case didChange(Reference, key: Int)
    }

    /// The kind of operation.
    public let kind: Kind
    /// The objects that the operation changed, as they were after it; nil for deleted ones.
    public let writes: [(object: Reference, record: ObjectRecord?)]
  }

  /// The revision that the commit made.
  public let revision: Revision
  private let contents: Contents

  /// The effects, in one reference: commits are passed around often, and kept by the thousand.
  private enum Contents: Sendable {
    case setting(PlainSetting)
    case listing(Listing)
  }

  /// The effects of a commit of any kind.
  private final class Listing: Sendable {
    let writer: String?
    let steps: [Step]
    let before: [TouchedObjects.Element]
    let listedResults: [Reference]?

    init(writer: String?, steps: [Step], before: [TouchedObjects.Element], listedResults: [Reference]?) {
      (self.writer, self.steps, self.before, self.listedResults) = (writer, steps, before, listedResults)
    }
  }

  /// Creates a commit of operations.
  ///
  /// `results` has the object of each operation, or is nil if that is the one object that was touched. A commit with
  /// nil that set one attribute makes no lists.
  init(
    revision: Revision, writer: String?, steps: [Step], before: [TouchedObjects.Element], results: [Reference]?
  ) {
    self.revision = revision
    if results == nil, steps.count == 1, before.count == 1,
      let setting = PlainSetting(steps[0], before[0].record, writer)
    {
      contents = .setting(setting)
    } else {
      contents = .listing(Listing(writer: writer, steps: steps, before: before, listedResults: results))
    }
  }

  /// Creates a commit of one setting.
  init(revision: Revision, _ setting: PlainSetting) {
    self.revision = revision
    contents = .setting(setting)
  }

  /// The setting of one attribute, if the commit did nothing else; nil otherwise.
  package var plainSetting: PlainSetting? {
    if case .setting(let setting) = contents { setting } else { nil }
  }

  /// The name of the writer, if the transaction gave one.
  public var writer: String? {
    switch contents {
    case .setting(let setting): setting.writer
    case .listing(let listing): listing.writer
    }
  }

  /// The operations that touched something, in order; that of a plain setting is made on each access.
  public var steps: [Step] {
    switch contents {
    case .setting(let setting): [setting.step]
    case .listing(let listing): listing.steps
    }
  }

  /// The objects that the commit touched, as they were before it; nil for those that did not exist.
  public var before: TouchedObjects {
    switch contents {
    case .setting(let setting): TouchedObjects(setting)
    case .listing(let listing): TouchedObjects(listing.before)
    }
  }

  /// The object of each operation of the transaction, in order.
  public var results: [Reference] {
    guard case .listing(let listing) = contents, let results = listing.listedResults else {
      return before.map(\.object)
    }
    return results
  }

  /// Calls `body` with each object that each operation changed, in order: its record after the operation, nil if
  /// deleted.
  package func forEachWrite(_ body: (Reference, ObjectRecord?) -> Void) {
    switch contents {
    case .setting(let setting): body(setting.object, setting.after)
    case .listing(let listing):
      for step in listing.steps { for (object, record) in step.writes { body(object, record) } }
    }
  }

  /// Calls `body` with each key that was set, in order.
  package func forEachChange(_ body: (KeyChange) -> Void) {
    switch contents {
    case .setting(let setting): body(setting.change)
    case .listing(let listing):
      for case .change(let changes) in listing.steps.lazy.map(\.kind) { for change in changes { body(change) } }
    }
  }

  // MARK: Touched objects

  /// Calls `body` with each object whose observers the commit can notify, possibly more than once.
  ///
  /// These are the objects that were written, and those with a bracketed key, since a bracket is a change even if
  /// nothing was written inside.
  package func forEachTouchedObject(_ body: (Reference) -> Void) {
    if let setting = plainSetting { return body(setting.object) }
    for entry in before { body(entry.object) }
    for step in steps {
      if case .willChange(let object, _) = step.kind { body(object) }
    }
  }

  /// Returns true if the commit touches an object that `isWanted` accepts; see `forEachTouchedObject(_:)`.
  package func touchesObject(where isWanted: (Reference) -> Bool) -> Bool {
    if let setting = plainSetting { return isWanted(setting.object) }
    if before.contains(where: { isWanted($0.object) }) { return true }
    return steps.contains { step in
      if case .willChange(let object, _) = step.kind { isWanted(object) } else { false }
    }
  }

  // MARK: Size

  private static let bytesPerMember = 48

  /// The approximate number of bytes of memory that the commit keeps alive, for bounds on histories.
  package var approximateBytes: Int {
    if let setting = plainSetting {
      return 160 + 96 + 2 * 64 + setting.before.approximateBytes + setting.after.approximateBytes
    }
    var bytes = 160
    var deleted: Set<Reference> = []
    for step in steps {
      bytes += 96
      if case .change(let changes) = step.kind {
        for change in changes { bytes += Self.approximateBytes(ofMembersIn: change) }
      }
      for write in step.writes {
        bytes += 64 + (write.record?.approximateBytes ?? 0)
        if write.record == nil { deleted.insert(write.object) }
      }
    }
    for entry in before {
      bytes += 64 + (entry.record?.approximateBytes ?? 0)
      // Nothing else keeps the members of a deleted object.
      if deleted.contains(entry.object) { bytes += Self.bytesPerMember * (entry.record?.memberCount ?? 0) }
    }
    return bytes
  }

  /// Returns the approximate bytes that a change keeps of a collection besides the record: the inserted and removed
  /// members; for one that was set as a whole all members, since it shares nothing with the list before.
  private static func approximateBytes(ofMembersIn change: KeyChange) -> Int {
    guard let collection = change.collection else { return bytesPerMember * change.memberCount }
    return 96 + bytesPerMember * (collection.removed.count + collection.inserted.count)
  }
}

/// The setting of one attribute of one object, as the only effect of a commit: the most frequent kind of commit, in one
/// allocation and without lists.
package final class PlainSetting: Sendable {
  /// The object.
  package let object: Reference
  /// The index of the attribute in its entity.
  package let key: Int
  /// True if the key's `notifies` kept it silent.
  package let isSilent: Bool
  /// The object before and after the commit.
  package let before, after: ObjectRecord
  fileprivate let writer: String?

  init(
    _ object: Reference, key: Int, isSilent: Bool, before: ObjectRecord, after: ObjectRecord, writer: String?
  ) {
    (self.object, self.key, self.isSilent) = (object, key, isSilent)
    (self.before, self.after, self.writer) = (before, after, writer)
  }

  /// Creates the setting that a step made of an object that was `before`; nil if the step is anything else.
  fileprivate convenience init?(_ step: Commit.Step, _ before: ObjectRecord?, _ writer: String?) {
    guard let before, case .change(let changes) = step.kind, changes.count == 1, let change = changes.first,
      step.writes.count == 1, let after = step.writes[0].record, after.entity.isAttribute(change.key)
    else { return nil }
    self.init(
      change.object, key: change.key, isSilent: change.isSilent, before: before, after: after, writer: writer)
  }

  fileprivate var change: Commit.KeyChange {
    Commit.KeyChange(object: object, key: key, isSilent: isSilent, collection: nil)
  }

  fileprivate var step: Commit.Step { Commit.Step(kind: .change([change]), writes: [(object, after)]) }
}

/// The objects that a commit touched, each once, as they stood before it.
public struct TouchedObjects: RandomAccessCollection, Sendable {
  /// An object with its record before the commit; nil if it did not exist.
  public typealias Element = (object: Reference, record: ObjectRecord?)

  private enum Contents: Sendable {
    case one(PlainSetting)
    case list([Element])
  }

  private let contents: Contents

  fileprivate init(_ setting: PlainSetting) { contents = .one(setting) }

  fileprivate init(_ list: [Element]) { contents = .list(list) }

  /// The index of the first object.
  public var startIndex: Int { 0 }

  /// The index after the last object.
  public var endIndex: Int {
    switch contents {
    case .one: 1
    case .list(let list): list.count
    }
  }

  /// The object at an index, with its record before the commit.
  public subscript(index: Int) -> Element {
    switch contents {
    case .one(let setting):
      precondition(index == 0, "there is one object")
      return (setting.object, setting.before)
    case .list(let list): return list[index]
    }
  }
}

extension ObjectRecord {
  /// The total number of members of its collections.
  fileprivate var memberCount: Int {
    values.reduce(0) { if case .members(let list) = $1 { $0 + list.count } else { $0 } }
  }

  /// The approximate number of bytes of memory that the object takes.
  ///
  /// O(1) for an entity without collections, whose members are shared with the list before and after; O(n) otherwise.
  fileprivate var approximateBytes: Int {
    guard entity.hasCollections else { return memoryBytes }
    let values = values
    return values.indices.reduce(64) { $0 + values.approximateBytes(at: $1) }
  }
}
