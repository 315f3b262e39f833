public import KeyValueModel

/// A change dictionary (KVO guide, "Receiving Notification of a Change"): what happened to one observed value.
public struct Change: Sendable {
  /// What sort of change it is.
  public enum Kind: String, Hashable, Sendable {
    /// The value was set.
    case setting
  }

  /// The cell that shows it, where the observer has cells.
  public let cell: String?
  /// Whose change it is: object, key path and context as registered.
  public let observation: Observation
  /// What sort of change it is.
  public let kind = Kind.setting
  /// The value before, where it was asked for.
  public var old: Value?
  /// The value after, where it was asked for; never on a prior notification.
  public let new: Value?
  /// Whether this is the notification before the change.
  public let isPrior: Bool
  /// How many changes were merged into this one, where it was merged.
  public var coalesced: Int?

  /// A change of one observation.
  public init(
    cell: String?, observation: Observation, old: Value?, new: Value?, isPrior: Bool, coalesced: Int? = nil
  ) {
    self.cell = cell
    self.observation = observation
    self.old = old
    self.new = new
    self.isPrior = isPrior
    self.coalesced = coalesced
  }
}
