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

/// What a transaction has taken of its limits so far.
struct TransactionBudget {
  /// The steps of writing an object.
  private static let stepsOfWrite = 8
  /// How many bytes that are written or replaced are a step, and how many elements that are moved.
  private static let amountOfStep = 16

  let limits: TransactionLimits
  private(set) var bytes = 0
  private(set) var steps = 0

  init(_ limits: TransactionLimits) {
    self.limits = limits
  }

  /// How many steps are left.
  var stepsLeft: Int { limits.steps - steps }
  /// How many bytes are left.
  var bytesLeft: Int { limits.bytes - bytes }

  /// Counts steps.
  mutating func spend(_ steps: Int) { self.steps += steps }

  /// Counts an object that is written.
  mutating func spendWrites(_ count: Int = 1) { steps += count * Self.stepsOfWrite }

  /// Counts a value that takes the place of another.
  mutating func spend(writing new: Int, over old: Int) {
    bytes += new
    steps += Self.steps(of: new + old)
  }

  /// The steps of so many bytes, or of so many elements that move.
  static func steps(of amount: Int) -> Int { amount / amountOfStep }

  /// Whether the transaction has taken no more than it may.
  var isKept: Bool { bytes <= limits.bytes && steps <= limits.steps }

  /// Throws `content-too-large` or `too-many-steps` where the transaction has taken more than it may.
  func check() throws(ModelError) {
    guard bytes <= limits.bytes else {
      throw ModelError(.contentTooLarge, "the transaction writes more than \(limits.bytes) bytes")
    }
    guard steps <= limits.steps else {
      throw ModelError(.tooManySteps, "the transaction takes more than \(limits.steps) steps")
    }
  }
}
