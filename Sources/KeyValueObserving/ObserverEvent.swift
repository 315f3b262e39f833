public import KeyValueModel

/// The name of an observer: it has any number of observations, and is notified once of each commit.
public struct ObserverID: Hashable, Sendable {
  /// A number that is used once.
  public let rawValue: UInt64

  /// The observer of this number.
  public init(_ rawValue: UInt64) {
    self.rawValue = rawValue
  }
}

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
