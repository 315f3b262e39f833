import HashTreeCollections
import Support

/// Which objects have which value for one key. Persistent, as the state is.
struct ValueIndex: Sendable {
  private var references: TreeDictionary<Value, TreeSet<Reference>> = [:]
  private let isOverDates: Bool

  /// An index over values of a type; dates are the same when they name the same instant.
  init(type: ValueType?) {
    isOverDates = type == .attribute(.date)
  }

  /// The objects that have `value`, in no order.
  func references(of value: Value) -> [Reference] {
    references[entry(of: value)].map(Array.init) ?? []
  }

  /// Notes that an object has another value than before; nil where it is not there.
  mutating func update(_ reference: Reference, from old: Value?, to new: Value?) {
    let (before, after) = (old.map(entry), new.map(entry))
    guard before != after else { return }
    if let before {
      references[before]?.remove(reference)
      if references[before]?.isEmpty == true { references[before] = nil }
    }
    if let after { references[after, default: []].insert(reference) }
  }

  /// The value under which objects are found.
  private func entry(of value: Value) -> Value {
    guard isOverDates, case .string(let text) = value, let instant = RFC3339Instant(text) else {
      return value.withoutSignOfZero
    }
    return .array([.integer(instant.seconds), .integer(Int64(instant.nanoseconds))])
  }
}
