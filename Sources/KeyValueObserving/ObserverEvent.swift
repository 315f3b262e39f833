public import KeyValueModel

/// What one commit did to what one observer observes.
public struct ObserverEvent: Sendable {
  /// An observed object that was deleted.
  public struct Gone: Hashable, Sendable {
    /// The cell that showed it, where the observer has cells.
    public let cell: String?
    /// The object.
    public let object: Reference
    /// The context of the observations that ended with it; nil where they had none, or several.
    public let context: String?

    /// An object that a cell, or with nil the observer as a whole, has lost.
    public init(cell: String?, object: Reference, context: String?) {
      self.cell = cell
      self.object = object
      self.context = context
    }

    /// The object of an observation, which a cell has lost.
    init(of observation: Observation, in cell: String?) {
      self.init(cell: cell, object: observation.object, context: observation.context)
    }

    /// The same, whatever the context is.
    var withoutContext: Gone { Gone(cell: cell, object: object, context: nil) }

    /// Each object once per cell, in the order of the cells.
    static func inOrder(_ gone: Set<Gone>) -> [Gone] {
      Dictionary(grouping: gone, by: \.withoutContext).map { $1.count == 1 ? $1[0] : $0 }
        .sorted { ($0.cell ?? "", $0.object) < ($1.cell ?? "", $1.object) }
    }
  }

  /// The observer that is notified.
  public let observer: ObserverID
  /// The commit's revision.
  public let revision: Revision
  /// The writer's name, where the transaction has one.
  public let writer: String?
  /// The changes in the order of the operations; within one, priors first and the changes as their mirror image.
  public let changes: [Change]
  /// The objects that are no more, each once per cell, in the order of the cells. Their observations have ended.
  public let gone: [Gone]
  /// Whether the commit has more changes for the observer than one event may have: then `changes` is empty, and the
  /// observer has to read the state itself. Its observations go on.
  public let hasOverflowed: Bool
  /// True if it has overflowed because the values of the changes are too long or take more than the budget of the
  /// commit to evaluate, and not because the changes are too many: the observer can be brought up to date with one
  /// merged change.
  public let isTooLong: Bool

  /// What one commit did to what `observer` observes.
  public init(
    observer: ObserverID, revision: Revision, writer: String?, changes: [Change], gone: [Gone],
    hasOverflowed: Bool = false, isTooLong: Bool = false
  ) {
    self.observer = observer
    self.revision = revision
    self.writer = writer
    self.changes = changes
    self.gone = gone
    self.hasOverflowed = hasOverflowed
    self.isTooLong = isTooLong
  }
}

/// The name of an observer: it has any number of observations, and is notified once of each commit.
public struct ObserverID: Hashable, Sendable {
  /// A number that is used once.
  public let rawValue: UInt64

  /// The observer of this number.
  public init(_ rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

/// A change dictionary (KVO guide, "Receiving Notification of a Change"): what happened to one observed value.
public struct Change: Sendable {
  /// What sort of change it is.
  public enum Kind: String, Hashable, Sendable {
    /// The value was set.
    case setting
    /// Members came to a collection.
    case insertion
    /// Members went from a collection.
    case removal
    /// Members of a collection were put in the place of others.
    case replacement
  }

  /// The cell that shows it, where the observer has cells.
  public let cell: String?
  /// The observation that changed: object, key path and context as registered.
  public let observation: Observation
  /// What sort of change it is.
  public let kind: Kind
  /// The places of the members, ascending, for changes of an ordered collection that is not set as a whole: in the
  /// collection after an insertion, and before a removal.
  public let indexes: [Int]?
  /// The value before, where it was asked for; of a collection that is not set as a whole, the members that went.
  public var old: Value?
  /// The members that came or went, whatever was asked for; nil where the value was set.
  package var touched: [Value]?
  /// The value after, where it was asked for; of a collection that is not set as a whole, the members that came; never
  /// on a prior notification.
  public let new: Value?
  /// Whether this is the notification before the change.
  public let isPrior: Bool
  /// How many changes were merged into this one, where it was merged.
  public var coalesced: Int?

  /// A change of one observation.
  public init(
    cell: String?, observation: Observation, kind: Kind = .setting, indexes: [Int]? = nil, old: Value?, new: Value?,
    isPrior: Bool, coalesced: Int? = nil
  ) {
    self.cell = cell
    self.observation = observation
    self.kind = kind
    self.indexes = indexes
    self.old = old
    self.new = new
    self.isPrior = isPrior
    self.coalesced = coalesced
  }

  /// A setting, with those of its values that the observation asks for. Only these are read.
  init(
    of observation: Observation, cell: String?, old: @autoclosure () -> Value?, new: @autoclosure () -> Value?
  ) {
    let options = observation.options
    self.init(
      cell: cell, observation: observation, old: options.contains(.old) ? old() : nil,
      new: options.contains(.new) ? new() : nil, isPrior: false)
  }

  /// A change of a collection's members, with those of them that the observation asks for.
  init(
    of observation: Observation, cell: String?, kind: Kind, indexes: [Int]?, removed: [Value], inserted: [Value]
  ) {
    let options = observation.options
    self.init(
      cell: cell, observation: observation, kind: kind, indexes: indexes,
      old: options.contains(.old) && kind != .insertion ? .array(removed) : nil,
      new: options.contains(.new) && kind != .removal ? .array(inserted) : nil, isPrior: false)
  }
}

extension Change {
  /// How many bytes of text its values have: a little less than their JSON.
  package var textBytes: Int { (old?.leastTextBytes ?? 0) + (new?.leastTextBytes ?? 0) }
}

extension Value {
  /// How many bytes of text there are in it, everything else counted as one.
  var leastTextBytes: Int {
    switch self {
    case .string(let text): text.utf8.count
    case .array(let elements): elements.reduce(1) { $0 + $1.leastTextBytes }
    case .members(let list): list.count
    case .object(let object): object.members.reduce(1) { $0 + $1.key.utf8.count + $1.value.textBytes }
    default: 1
    }
  }
}
