/// The order of a fetch's objects (the wire contract, sections 3 and 5): by the values for key paths, one after the other,
/// and in the end by reference. Null comes before everything else, and so last where the order is turned around.
package struct SortOrder: Sendable {
  /// One key path to sort by.
  package struct Key: Sendable {
    /// The path from each object.
    package let path: ModelKeyPath
    /// Whether the greatest comes first.
    package let isDescending: Bool
    let order: ValueOrder
  }

  /// The paths, the most important one first.
  package let keys: [Key]

  /// Reads `-salary,name`. Throws `malformed-query` for an empty name, and what is wrong with a key path; values must be
  /// ones that have an order, which lists have not.
  package init(_ text: String, of entity: Entity, in schema: Schema) throws(ModelError) {
    var keys: [Key] = []
    for name in text.split(separator: ",", omittingEmptySubsequences: false) {
      let isDescending = name.hasPrefix("-")
      let path = try schema.resolve(String(isDescending ? name.dropFirst() : name), from: entity)
      guard path.type.element == nil else {
        throw ModelError(.invalidValue, "'\(path.text)' is a list and has no order", keyPath: path.text)
      }
      let order: ValueOrder = path.type == .attribute(.date) ? .dates : .plain
      keys.append(Key(path: path, isDescending: isDescending, order: order))
    }
    self.keys = keys
  }

  /// What an object is sorted by, read once.
  package struct Rank: Sendable {
    /// The object.
    package let reference: Reference
    let values: [ValueOrder.Key]
  }

  /// What the object is sorted by, as `reader` has it.
  package func rank(of reference: Reference, in reader: some ObjectReader) -> Rank {
    Rank(reference: reference, values: keys.map { $0.order.key(of: reader.value(of: reference, at: $0.path)) })
  }

  /// Whether `left` comes before `right`.
  package func precedes(_ left: Rank, _ right: Rank) -> Bool {
    for (key, (one, other)) in zip(keys, zip(left.values, right.values)) {
      switch one.ordering(to: other) {
      case .same: continue
      case .ascending: return !key.isDescending
      case .descending: return key.isDescending
      }
    }
    return left.reference < right.reference
  }
}
