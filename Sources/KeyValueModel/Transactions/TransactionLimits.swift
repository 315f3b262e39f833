/// The limits on the size and the work of one transaction: the single writer serves no other transaction meanwhile.
public struct TransactionLimits: Hashable, Sendable {
  /// The maximum size of one object in bytes, about as its JSON has them. A larger object may still shrink.
  /// `object.bytes`.
  public var objectBytes = 16 << 20
  /// The maximum number of bytes that one transaction writes, about as the JSON of its values has them.
  /// `transaction.bytes`.
  public var bytes = 64 << 20
  /// The maximum number of steps of one transaction. A written object is eight steps; one step each is a value that is
  /// read, 16 bytes that are written or replaced, 16 elements of an array that are moved, and a member that is inserted
  /// into or removed from a collection. `transaction.steps`.
  public var steps = 5_000_000

  /// The maximum bytes of memory that all objects take after a transaction that makes them take more. A transaction
  /// that makes them take less, or as much, is never refused for it. `objects.bytes`, `objects.bytesPerClient`.
  public var memoryBytes = Int.max
  /// The setting that `memoryBytes` comes from, which a refusal names.
  public var memoryBound = MemoryBound.objects

  /// A bound of the memory that objects take.
  public enum MemoryBound: Hashable, Sendable {
    /// All objects together: `objects.bytes`.
    case objects
    /// The growth that one client has caused: `objects.bytesPerClient`.
    case client

    /// The refusal of a transaction that exceeds the bound.
    var refusal: ModelError {
      switch self {
      case .objects:
        ModelError(
          .overloaded,
          "the objects take as much memory as objects.bytes allows; only writes that add nothing are accepted")
      case .client:
        ModelError(
          .overloaded,
          "this client has added as much to the objects as objects.bytesPerClient allows; "
            + "only writes that add nothing are accepted from it")
      }
    }
  }

  /// Creates the default limits.
  public init() {}

  /// No limits: for transactions that were committed before and are applied again.
  public static var unlimited: TransactionLimits {
    var limits = TransactionLimits()
    (limits.objectBytes, limits.bytes, limits.steps, limits.memoryBytes) = (.max, .max, .max, .max)
    return limits
  }
}

/// The part of its limits that a transaction has used.
struct TransactionBudget {
  /// The steps of writing an object.
  private static let stepsOfWrite = 8
  /// The number of bytes written or replaced that count as one step, and of elements moved.
  private static let amountOfStep = 16

  let limits: TransactionLimits
  private(set) var bytes = 0
  private(set) var steps = 0

  init(_ limits: TransactionLimits) {
    self.limits = limits
  }

  /// The number of steps left.
  var stepsLeft: Int { limits.steps - steps }
  /// The number of bytes left.
  var bytesLeft: Int { limits.bytes - bytes }

  /// Counts steps.
  mutating func spend(_ steps: Int) { self.steps += steps }

  /// Counts written objects.
  mutating func spendWrites(_ count: Int = 1) { steps += count * Self.stepsOfWrite }

  /// Counts a value of `new` bytes that replaces one of `old` bytes.
  mutating func spend(writing new: Int, over old: Int) {
    bytes += new
    steps += Self.steps(of: new + old)
  }

  /// Returns the steps for a number of bytes, or of moved elements.
  static func steps(of amount: Int) -> Int { amount / amountOfStep }

  /// True if the transaction has not exceeded its limits.
  var isKept: Bool { bytes <= limits.bytes && steps <= limits.steps }

  /// Throws `content-too-large` or `too-many-steps` if the transaction has exceeded its limits.
  func check() throws(ModelError) {
    guard bytes <= limits.bytes else {
      throw ModelError(.contentTooLarge, "the transaction writes more than \(limits.bytes) bytes")
    }
    guard steps <= limits.steps else {
      throw ModelError(.tooManySteps, "the transaction takes more than \(limits.steps) steps")
    }
  }
}
