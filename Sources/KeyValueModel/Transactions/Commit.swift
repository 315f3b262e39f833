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
  /// The name of the writer, where the transaction gave one.
  public let writer: String?
  /// Its operations that touched something, in order.
  public let steps: [Step]
  /// Every object that it touched, as it stood before; nil for those that were not there.
  public let before: [(object: Reference, record: ObjectRecord?)]
  /// For each operation of the transaction the object that it was about; nil where that is the one object that it
  /// touched: most transactions are such, and make no list.
  let listedResults: [Reference]?

  /// For each operation of the transaction the object that it was about.
  public var results: [Reference] { listedResults ?? before.map(\.object) }
}
