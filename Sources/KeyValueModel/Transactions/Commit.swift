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
}
