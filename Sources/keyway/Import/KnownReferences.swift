import KeyValueModel

/// Which objects an import knows to be there: those that it made or asked for last. Holds twice `capacity` at most.
struct KnownReferences: Sendable {
  private let capacity: Int
  private var recent: Set<Reference> = []
  private var older: Set<Reference> = []
  /// Whether every object that is there is known.
  private(set) var isComplete: Bool

  /// None yet. `isComplete` says that there is none.
  init(isComplete: Bool, capacity: Int = ImportLimits.knownReferences) {
    self.isComplete = isComplete
    self.capacity = capacity
  }

  func contains(_ reference: Reference) -> Bool { recent.contains(reference) || older.contains(reference) }

  mutating func insert(_ reference: Reference) {
    recent.insert(reference)
    guard recent.count >= capacity else { return }
    if !older.isEmpty { isComplete = false }
    older = recent
    recent = []
  }
}
