/// What an operator should know of a store: told once when it begins, and once when it is over.
package enum StoreNotice: Hashable, Sendable {
  /// The journal takes no writes, for this reason, which may name files. Reading goes on.
  case refusesWrites(String)
  /// It takes writes again.
  case takesWrites
  /// A write was refused because it would have the objects take more memory than they may. Told each time.
  case refusesGrowth
  /// The state could not be written down, for this reason; the journal grows until it can.
  case snapshotFailed(String)
  /// It was written down.
  case snapshotWritten
  /// What this node keeps of a journal that it shares cannot be written, for this reason; all else goes on.
  case cacheFailed(String)
  /// It can be written again.
  case cacheWritten
}
