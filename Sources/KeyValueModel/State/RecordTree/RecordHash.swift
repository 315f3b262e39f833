/// The way to a record through a `RecordTree`: the hash of its reference, 6 bits of it for each level, from the top.
///
/// It is Swift's `Hasher`, seeded anew in each process: nobody can choose ids that fall together, and the order of a
/// tree differs from run to run.
struct RecordHash {
  /// All of it; a tree has its records in the order of these numbers.
  let bits: UInt64

  /// The hash of a reference, with those bits alone that `mask` has.
  init(of reference: Reference, mask: UInt64) {
    bits = UInt64(truncatingIfNeeded: reference.hashValue) & mask
  }

  /// The last level that has bits of its own.
  static let lastLevel = 9

  /// Which of the 64 slots of a branch at this level it belongs to.
  func slot(level: Int) -> Int { Self.slot(of: tag(level: level)) }

  /// What tells records of a bucket below a branch of this level apart: the bits of the slot, and the ten behind them.
  func tag(level: Int) -> UInt16 { UInt16(truncatingIfNeeded: (bits &<< UInt64(6 * level)) &>> 48) }

  /// The slot that a tag begins with.
  static func slot(of tag: UInt16) -> Int { Int(tag >> 10) }
}
