/// The order of a fetch's objects (the specification, sections 3 and 5): by the values for key paths, one after the
/// other, and in the end by reference. Null comes before everything else, and so last where the order is turned around.
package struct SortOrder: Sendable {
  /// One key path to sort by.
  package struct Key: Sendable {
    /// The path from each object.
    package let path: ModelKeyPath
    /// Whether the greatest comes first.
    package let isDescending: Bool
    /// How its values stand to one another.
    package let order: ValueOrder

    /// Reads one key path, ascending. Throws what is wrong with it; its values must be ones that have an order, which
    /// lists have not.
    package init(
      _ text: String, isDescending: Bool = false, of entity: Entity, in schema: Schema
    ) throws(ModelError) {
      let path = try schema.resolve(text, from: entity)
      guard path.type.element == nil else {
        throw ModelError(.invalidValue, "'\(path.text)' is a list and has no order", keyPath: path.text)
      }
      self.path = path
      self.isDescending = isDescending
      order = path.type == .attribute(.date) ? .dates : .plain
    }

    /// What an object is ordered by, as `reader` has it.
    package func value(of reference: Reference, in reader: some ObjectReader) -> ValueOrder.Key {
      order.key(of: reader.value(of: reference, at: path))
    }
  }

  /// The paths, the most important one first.
  package let keys: [Key]

  /// The most key paths of an order.
  package static let maximumKeys = 32

  /// The order of references.
  package init() { keys = [] }

  /// Reads `-salary,name`. Throws what is wrong with a key path; values must be ones that have an order, which lists
  /// have not.
  package init(_ text: String, of entity: Entity, in schema: Schema) throws(ModelError) {
    var keys: [Key] = []
    var seen: Set<Substring> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      let isDescending = name.hasPrefix("-")
      // What is ordered by already has no say any more.
      guard seen.insert(isDescending ? name.dropFirst() : name).inserted else { continue }
      guard seen.count <= Self.maximumKeys else {
        throw ModelError(.malformedKeyPath, "a sort has at most \(Self.maximumKeys) key paths")
      }
      keys.append(
        try Key(
          String(isDescending ? name.dropFirst() : name), isDescending: isDescending, of: entity, in: schema))
    }
    self.keys = keys
  }

  /// What an object is sorted by, read once.
  package struct Rank: Sendable {
    /// The object.
    package let reference: Reference
    let values: [ValueOrder.Key]

    /// Whether an object with the other rank stands at the same place: nothing that orders them differs.
    package func isSame(as other: Rank) -> Bool {
      guard reference == other.reference, values.count == other.values.count else { return false }
      return values.indices.allSatisfy { values[$0].ordering(to: other.values[$0]) == .same }
    }
  }

  /// What the object is sorted by, as `reader` has it.
  package func rank(of reference: Reference, in reader: some ObjectReader) -> Rank {
    Rank(reference: reference, values: keys.map { $0.value(of: reference, in: reader) })
  }

  /// Whether `left` comes before `right`.
  package func precedes(_ left: Rank, _ right: Rank) -> Bool {
    // No pairs are made: this is what a live query spends most of its time with.
    for index in keys.indices {
      switch left.values[index].ordering(to: right.values[index]) {
      case .same: continue
      case .ascending: return !keys[index].isDescending
      case .descending: return keys[index].isDescending
      }
    }
    return left.reference < right.reference
  }
}
