public import KeyValueModel

/// The effects of one commit on the observations of one observer.
public struct ObserverEvent: Sendable {
  /// An observed object that was deleted, or that counts as deleted because its viewer may not read it any more.
  public struct Gone: Hashable, Sendable {
    /// The cell that showed the object, if the observer has cells.
    public let cell: String?
    /// The object.
    public let object: Reference
    /// The context of the observations that ended with the object; nil if they had none, or several.
    public let context: String?

    /// Creates the loss of an object by a cell or, with nil, by the observer as a whole.
    public init(cell: String?, object: Reference, context: String?) {
      self.cell = cell
      self.object = object
      self.context = context
    }

    /// Creates the loss of an observation's object by a cell.
    init(of observation: Observation, in cell: String?) {
      self.init(cell: cell, object: observation.object, context: observation.context)
    }

    /// The same loss without a context.
    var withoutContext: Gone { Gone(cell: cell, object: object, context: nil) }

    /// Returns each object once per cell, in the order of the cells.
    static func inOrder(_ gone: Set<Gone>) -> [Gone] {
      Dictionary(grouping: gone, by: \.withoutContext).map { $1.count == 1 ? $1[0] : $0 }
        .sorted { ($0.cell ?? "", $0.object) < ($1.cell ?? "", $1.object) }
    }
  }

  /// The observer that is notified.
  public let observer: ObserverID
  /// The commit's revision.
  public let revision: Revision
  /// The writer's name, if the transaction has one.
  public let writer: String?
  /// The changes in the order of the operations; within one operation, priors first, then the changes in reverse order.
  public let changes: [Change]
  /// The objects that are gone, each once per cell, in the order of the cells. Their observations have ended.
  public let gone: [Gone]
  /// True if the commit has more changes for the observer than one event may have. Then `changes` is empty, and the
  /// observer has to read the state itself. Its observations continue.
  public let hasOverflowed: Bool
  /// True if it has overflowed because the values of the changes are too long or take more than the budget of the
  /// commit to evaluate, and not because the changes are too many: the observer can be brought up to date with one
  /// merged change.
  public let isTooLong: Bool

  /// Creates the event of one commit for `observer`.
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

/// The identity of an observer, which has any number of observations and is notified once of each commit.
public struct ObserverID: Hashable, Sendable {
  /// A number that is never reused.
  public let rawValue: UInt64

  /// Creates the identity with this number.
  public init(_ rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

/// A change dictionary (KVO guide, "Receiving Notification of a Change"): what happened to one observed value.
public struct Change: Sendable {
  /// The kind of the change.
  public enum Kind: String, Hashable, Sendable {
    /// The value was set.
    case setting
    /// Members were inserted into a collection.
    case insertion
    /// Members were removed from a collection.
    case removal
    /// Members of a collection were replaced by others.
    case replacement
  }

  /// The cell that shows the value, if the observer has cells.
  public let cell: String?
  /// The observation that changed: object, key path and context as registered.
  public let observation: Observation
  /// The kind of the change.
  public let kind: Kind
  /// The indexes of the members, ascending, for changes of an ordered collection that is not set as a whole: in the
  /// collection after an insertion, and before a removal.
  public let indexes: [Int]?
  /// The value before the change, if requested; for a collection that is not set as a whole, the removed members.
  public var old: Value?
  /// The inserted and removed members, regardless of the options; nil if the value was set.
  package var touched: [Value]?
  /// The value after the change, if requested; for a collection that is not set as a whole, the inserted members.
  /// Always nil in a prior notification.
  public let new: Value?
  /// True if this is the notification before the change.
  public let isPrior: Bool
  /// The number of changes that were merged into this one; nil if it is not merged.
  public var coalesced: Int?

  /// Creates a change of one observation.
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

  /// Creates a setting with the values that the observation requests. Only these are evaluated.
  init(
    of observation: Observation, cell: String?, old: @autoclosure () -> Value?, new: @autoclosure () -> Value?
  ) {
    let options = observation.options
    self.init(
      cell: cell, observation: observation, old: options.contains(.old) ? old() : nil,
      new: options.contains(.new) ? new() : nil, isPrior: false)
  }

  /// Creates a change of a collection's members, with the members that the observation requests.
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
  /// The number of bytes of text in the values: a little less than their JSON.
  package var textBytes: Int { (old?.leastTextBytes ?? 0) + (new?.leastTextBytes ?? 0) }
}

extension Value {
  /// The number of bytes of text in the value, with everything else counted as one byte.
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
