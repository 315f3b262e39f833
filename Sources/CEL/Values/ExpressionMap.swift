/// A map in the order in which its entries were given. Small maps are searched, larger ones have an index.
package struct ExpressionMap: Sendable {
  /// The contents of a map, in one object, so that a map is as small as other values.
  private final class Storage: Sendable {
    let keys: [ExpressionValue]
    let values: [ExpressionValue]
    let slots: [ExpressionMapKey]
    let index: [ExpressionMapKey: Int]

    init(
      _ entries: [(key: ExpressionValue, value: ExpressionValue)], _ slots: [ExpressionMapKey],
      _ index: [ExpressionMapKey: Int]
    ) {
      keys = entries.map(\.key)
      values = entries.map(\.value)
      self.slots = slots
      self.index = index
    }
  }

  /// The maximum number of entries that are searched one by one rather than by an index.
  private static let searchedCount = 8

  private let storage: Storage

  /// The keys in order.
  package var keys: [ExpressionValue] { storage.keys }
  /// The values, each at the index of its key.
  package var values: [ExpressionValue] { storage.values }

  /// Creates the map with `entries`. Throws `duplicateKey` if two keys are equal, and `invalidArgument` if one is
  /// neither a bool nor an integer nor a string.
  package init(_ entries: [(key: ExpressionValue, value: ExpressionValue)]) throws(EvaluationError) {
    var slots: [ExpressionMapKey] = []
    slots.reserveCapacity(entries.count)
    var index: [ExpressionMapKey: Int] = [:]
    let isIndexed = entries.count > ExpressionMap.searchedCount
    if isIndexed { index.reserveCapacity(entries.count) }
    for (key, _) in entries {
      guard let slot = ExpressionMapKey(literal: key) else {
        throw EvaluationError(.invalidArgument, "a key of a map cannot be a \(key.typeName)")
      }
      let isNew = isIndexed ? index.updateValue(slots.count, forKey: slot) == nil : !slots.contains(slot)
      guard isNew else { throw EvaluationError(.duplicateKey, "a map has the key \(key.debugText) twice") }
      slots.append(slot)
    }
    storage = Storage(entries, slots, index)
  }

  /// The number of entries.
  package var count: Int { storage.keys.count }

  /// The value of `key`; nil if there is none.
  package subscript(key: ExpressionMapKey) -> ExpressionValue? {
    if storage.slots.count <= ExpressionMap.searchedCount {
      return storage.slots.firstIndex(of: key).map { storage.values[$0] }
    }
    return storage.index[key].map { storage.values[$0] }
  }
}

/// A key of a map: a bool, an integer of either kind, or a string. Equal numbers are equal keys whatever their types
/// (CEL language definition, Numeric Values).
package struct ExpressionMapKey: Sendable, Hashable {
  private enum Content: Sendable, Hashable {
    case bool(Bool)
    case number(Int128)
    case string(ExactText)
  }

  private let content: Content

  /// Creates the key that equals `value`; nil if such a value cannot be a key. A double is the integer that it equals.
  package init?(_ value: ExpressionValue) {
    switch value {
    case .bool(let flag): content = .bool(flag)
    case .int(let number): content = .number(Int128(number))
    case .uint(let number): content = .number(Int128(number))
    case .string(let text): content = .string(ExactText(text))
    case .double(let number):
      guard let exact = Int128(exactly: number) else { return nil }
      content = .number(exact)
    default: return nil
    }
  }

  /// Creates the key that equals a text.
  package init(_ text: String) { content = .string(ExactText(text)) }

  /// Creates the key that an entry's `value` is; nil for a double, too.
  fileprivate init?(literal value: ExpressionValue) {
    if case .double = value { return nil }
    self.init(value)
  }
}
