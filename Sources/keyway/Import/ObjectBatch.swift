import KeyValueModel

/// Lines that are imported together: so many, of so many bytes, and none of the same object.
struct ObjectBatch: Sendable {
  /// The objects in the order of the file.
  private(set) var rows: [ObjectLine] = []

  private let limits: ImportLimits
  private var references: Set<Reference> = []
  private var weight = 0
  private var operations = 0

  init(limits: ImportLimits) {
    self.limits = limits
  }

  /// Takes one more object in, or says that it begins the next batch.
  mutating func accept(_ row: ObjectLine) -> Bool {
    if !rows.isEmpty {
      guard rows.count < limits.batchRows, weight + row.weight <= limits.batchBytes,
        operations + 1 + row.links.count <= ImportLimits.operations, !references.contains(row.reference)
      else { return false }
    }
    references.insert(row.reference)
    weight += row.weight
    operations += 1 + row.links.count
    rows.append(row)
    return true
  }
}
