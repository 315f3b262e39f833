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
