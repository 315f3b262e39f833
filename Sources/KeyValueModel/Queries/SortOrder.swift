/// The order of a fetch's objects (the specification, sections 3 and 5): by the values of key paths, one after the
/// other, and finally by reference. Null precedes all other values, so that it comes last in a descending order.
package struct SortOrder: Sendable {
  /// One key path to sort by.
  package struct Key: Sendable {
    /// The path from each object.
    package let path: ModelKeyPath
    /// True for descending order.
    package let isDescending: Bool
    /// The order of its values.
    package let order: ValueOrder

    /// Parses one key path, ascending by default. Throws an error for an invalid path, and for a path whose values have
    /// no order, as lists do not.
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

    /// Returns the value that an object is sorted by, as `reader` has it.
    package func value(of reference: Reference, in reader: some ObjectReader) -> ValueOrder.Key {
      order.key(of: reader.value(of: reference, at: path))
    }
  }

  /// The key paths, in descending priority.
  package let keys: [Key]

  /// The maximum number of key paths in an order.
  package static let maximumKeys = 32

  /// Creates the order of references.
  package init() { keys = [] }

  /// Parses a sort such as `-salary,name`. Throws an error for an invalid path, and for a path whose values have no
  /// order, as lists do not.
  package init(_ text: String, of entity: Entity, in schema: Schema) throws(ModelError) {
    var keys: [Key] = []
    var seen: Set<Substring> = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      let isDescending = name.hasPrefix("-")
      // A repeated key path has no effect on the order.
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

  /// The values that an object is sorted by, read once.
  package struct Rank: Sendable {
    /// The object.
    package let reference: Reference
    let values: [ValueOrder.Key]

    /// True if the other rank has the same place: the same object, and no difference in the values that order it.
    package func isSame(as other: Rank) -> Bool {
      guard reference == other.reference, values.count == other.values.count else { return false }
      return values.indices.allSatisfy { values[$0].ordering(to: other.values[$0]) == .same }
    }
  }

  /// Returns the values that the object is sorted by, as `reader` has them.
  package func rank(of reference: Reference, in reader: some ObjectReader) -> Rank {
    Rank(reference: reference, values: keys.map { $0.value(of: reference, in: reader) })
  }

  /// Returns true if `left` comes before `right`.
  package func precedes(_ left: Rank, _ right: Rank) -> Bool {
    // Makes no pairs: a live query spends most of its time here.
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
