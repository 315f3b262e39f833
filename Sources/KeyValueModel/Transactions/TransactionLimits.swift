/// What one transaction may make, and how much work it may be: the single writer stands still for all others meanwhile.
public struct TransactionLimits: Hashable, Sendable {
  /// The most bytes of one object, about as its JSON has them. One that is larger already may still shrink.
  /// `object.bytes`.
  public var objectBytes = 16 << 20
  /// The most bytes that one transaction writes, about as the JSON of its values has them. `transaction.bytes`.
  public var bytes = 64 << 20
  /// The most steps of one transaction. An object that is written is eight; a value that is looked at is one, and so
  /// are 16 bytes that are written or replaced, 16 elements of an array that are moved, and a member of a collection
  /// that comes or goes. `transaction.steps`.
  public var steps = 5_000_000

  /// The most bytes of memory that all objects take after a transaction that makes them take more. One that makes them
  /// take less, or as much, is never refused for it. `objects.bytes`, `objects.bytesPerClient`.
  public var memoryBytes = Int.max
  /// The setting that `memoryBytes` comes from, which a refusal names.
  public var memoryBound = MemoryBound.objects

  /// A bound of the memory that objects take.
  public enum MemoryBound: Hashable, Sendable {
    /// All objects together: `objects.bytes`.
    case objects
    /// The growth that one client has caused: `objects.bytesPerClient`.
    case client

    /// The refusal of a transaction that is over the bound.
    var refusal: ModelError {
      switch self {
      case .objects:
        ModelError(
          .overloaded, "the objects take as much memory as objects.bytes allows; only writes that do not add are taken")
      case .client:
        ModelError(
          .overloaded,
          "this client has added as much to the objects as objects.bytesPerClient allows; "
            + "only writes that do not add are taken from it")
      }
    }
  }

  /// The defaults.
  public init() {}

  /// No limits: for what was committed once and is carried out again.
  public static var unlimited: TransactionLimits {
    var limits = TransactionLimits()
    (limits.objectBytes, limits.bytes, limits.steps, limits.memoryBytes) = (.max, .max, .max, .max)
    return limits
  }
}
