/// What a transaction did: enough to go from the state before it to the state after, one operation at a time, and back.
public struct Commit: Sendable {
  /// A key of an object that an operation set.
  public struct KeyChange: Hashable, Sendable {
    /// The object that holds the key.
    public let object: Reference
    /// The index of the key in its entity.
    public let key: Int
    /// True where the key's `notifies` kept it silent: observers are not notified, but paths through it lead elsewhere.
    public internal(set) var isSilent: Bool
    /// What became of the members, where the key is a collection and the operation did not set it as a whole.
    public internal(set) var collection: CollectionChange?
    /// How many members a collection has that was set as a whole; 0 for everything else.
    var memberCount = 0
  }

  /// Members of a collection that came, went or were replaced (KVO guide, "Indexed To-Many Compliance").
  public struct CollectionChange: Hashable, Sendable {
    /// The sort, as change dictionaries have it.
    public enum Kind: String, Hashable, Sendable {
      /// Members came.
      case insertion
      /// Members went.
      case removal
      /// Members were put in the place of others.
      case replacement
    }

    /// The sort.
    public let kind: Kind
    /// The places, ascending: after the operation for an insertion, before it for a removal; nil where the collection
    /// is not ordered.
    public let indexes: [Int]?
    /// The members that went, in order.
    public let removed: [Value]
    /// The members that came, in order.
    public let inserted: [Value]
  }

  /// What one operation did.
  public struct Step: Sendable {
    /// What sort of operation it was, as far as observers care.
    public enum Kind: Sendable {
      /// It set these keys, in this order.
      case change([KeyChange])
      /// It opened a bracket around a key.
      case willChange(Reference, key: Int)
      /// It closed the bracket.
      case didChange(Reference, key: Int)
    }

    /// The sort.
    public let kind: Kind
    /// The objects that it left different, as they stood after it; nil for deleted ones.
    public let writes: [(object: Reference, record: ObjectRecord?)]
  }

  /// The revision that it made.
  public let revision: Revision
  private let contents: Contents

  /// What it did, in one reference: commits are handed on often, and kept by the thousand.
  private enum Contents: Sendable {
    case setting(PlainSetting)
    case listing(Listing)
  }

  /// What any commit did.
  private final class Listing: Sendable {
    let writer: String?
    let steps: [Step]
    let before: [TouchedObjects.Element]
    let listedResults: [Reference]?

    init(writer: String?, steps: [Step], before: [TouchedObjects.Element], listedResults: [Reference]?) {
      (self.writer, self.steps, self.before, self.listedResults) = (writer, steps, before, listedResults)
    }
  }

  /// A commit of operations. `results` has for each of them the object that it was about; nil where that is the one
  /// object that it touched: most transactions are such, and make no list.
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

  /// A commit of one setting.
  init(revision: Revision, _ setting: PlainSetting) {
    self.revision = revision
    contents = .setting(setting)
  }

  /// The setting of one attribute, where that is all that it did.
  package var plainSetting: PlainSetting? {
    if case .setting(let setting) = contents { setting } else { nil }
  }

  /// The name of the writer, where the transaction gave one.
  public var writer: String? {
    switch contents {
    case .setting(let setting): setting.writer
    case .listing(let listing): listing.writer
    }
  }

  /// Its operations that touched something, in order; that of a plain setting is made when it is asked for.
  public var steps: [Step] {
    switch contents {
    case .setting(let setting): [setting.step]
    case .listing(let listing): listing.steps
    }
  }

  /// Every object that it touched, as it stood before; nil for those that were not there.
  public var before: TouchedObjects {
    switch contents {
    case .setting(let setting): TouchedObjects(setting)
    case .listing(let listing): TouchedObjects(listing.before)
    }
  }

  /// For each operation of the transaction the object that it was about.
  public var results: [Reference] {
    guard case .listing(let listing) = contents, let results = listing.listedResults else {
      return before.map(\.object)
    }
    return results
  }

  /// Gives what each operation left different, in order: objects as they stood after it, nil for deleted ones.
  package func forEachWrite(_ body: (Reference, ObjectRecord?) -> Void) {
    switch contents {
    case .setting(let setting): body(setting.object, setting.after)
    case .listing(let listing):
      for step in listing.steps { for (object, record) in step.writes { body(object, record) } }
    }
  }

  /// Gives every key that it set, in order.
  package func forEachChange(_ body: (KeyChange) -> Void) {
    switch contents {
    case .setting(let setting): body(setting.change)
    case .listing(let listing):
      for case .change(let changes) in listing.steps.lazy.map(\.kind) { for change in changes { body(change) } }
    }
  }

  // MARK: Touched objects

  /// Gives every object that the commit can notify the observers of: those that it wrote, and those with a key that it
  /// bracketed, since a bracket is a change even where nothing was written inside. Some may be given more than once.
  package func forEachTouchedObject(_ body: (Reference) -> Void) {
    if let setting = plainSetting { return body(setting.object) }
    for entry in before { body(entry.object) }
    for step in steps {
      if case .willChange(let object, _) = step.kind { body(object) }
    }
  }

  /// Whether the commit touches an object that is wanted; see `forEachTouchedObject(_:)`.
  package func touchesObject(where isWanted: (Reference) -> Bool) -> Bool {
    if let setting = plainSetting { return isWanted(setting.object) }
    if before.contains(where: { isWanted($0.object) }) { return true }
    return steps.contains { step in
      if case .willChange(let object, _) = step.kind { isWanted(object) } else { false }
    }
  }

  // MARK: Size

  private static let bytesPerMember = 48

  /// About how many bytes of memory the commit keeps alive, for bounds on histories.
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
      // Nothing else keeps what a deleted object had.
      if deleted.contains(entry.object) { bytes += Self.bytesPerMember * (entry.record?.memberCount ?? 0) }
    }
    return bytes
  }

  /// What a change keeps of a collection besides the record: the members that came or went; where it was set as a
  /// whole, all that it has, since the list before shares nothing with it.
  private static func approximateBytes(ofMembersIn change: KeyChange) -> Int {
    guard let collection = change.collection else { return bytesPerMember * change.memberCount }
    return 96 + bytesPerMember * (collection.removed.count + collection.inserted.count)
  }
}

/// The setting of one attribute of one object, where that is all that a commit did: the commonest of all commits, in
/// one piece of memory and without lists.
package final class PlainSetting: Sendable {
  /// The object.
  package let object: Reference
  /// The index of the attribute in its entity.
  package let key: Int
  /// True where the key's `notifies` kept it silent.
  package let isSilent: Bool
  /// The object as it was, and as it is.
  package let before, after: ObjectRecord
  fileprivate let writer: String?

  init(
    _ object: Reference, key: Int, isSilent: Bool, before: ObjectRecord, after: ObjectRecord, writer: String?
  ) {
    (self.object, self.key, self.isSilent) = (object, key, isSilent)
    (self.before, self.after, self.writer) = (before, after, writer)
  }

  /// What a step did to an object that was `before`; nil where that is anything else.
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
  /// An object with its record before the commit; nil where it was not there.
  public typealias Element = (object: Reference, record: ObjectRecord?)

  private enum Contents: Sendable {
    case one(PlainSetting)
    case list([Element])
  }

  private let contents: Contents

  fileprivate init(_ setting: PlainSetting) { contents = .one(setting) }

  fileprivate init(_ list: [Element]) { contents = .list(list) }

  /// Where the first one is.
  public var startIndex: Int { 0 }

  /// Behind the last one.
  public var endIndex: Int {
    switch contents {
    case .one: 1
    case .list(let list): list.count
    }
  }

  /// One of them.
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
  /// How many members its collections have.
  fileprivate var memberCount: Int {
    values.reduce(0) { if case .members(let list) = $1 { $0 + list.count } else { $0 } }
  }

  /// O(1) for an entity without collections, whose members are shared with the list before and after; O(n) otherwise.
  fileprivate var approximateBytes: Int {
    guard entity.hasCollections else { return memoryBytes }
    let values = values
    return values.indices.reduce(64) { $0 + values.approximateBytes(at: $1) }
  }
}
