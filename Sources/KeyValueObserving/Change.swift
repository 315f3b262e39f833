public import KeyValueModel

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
