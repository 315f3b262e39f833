import CEL
import OrderedCollections

/// A JSON object: names with values, in the order in which they were written. Two objects are equal if they have the
/// same members in any order (RFC 8259 §4).
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// The names and values in order.
  public var members: JSONMembers

  /// Creates an object with these members.
  public init(_ members: JSONMembers = JSONMembers()) { self.members = members }

  /// Creates an object with these members; if a name occurs twice, the last value is kept.
  public init(dictionaryLiteral elements: (String, Value)...) {
    members = JSONMembers()
    for (name, value) in elements { members[name] = value }
  }

  /// The value of a member, or nil if there is none. Setting nil removes the member.
  public subscript(name: String) -> Value? {
    get { members[name] }
    set { members[name] = newValue }
  }
}

/// The members of a JSON object: names with values, in the order in which they were written. Names are compared by code
/// points (RFC 8259 §8.3), so the two ways to write `é` are two names.
public struct JSONMembers: Sendable {
  private var storage: OrderedDictionary<ExactText, Value> = [:]

  /// Creates an empty list of members.
  public init() {}

  /// The value of a member, or nil if there is none. Setting a value for a new name appends the member; setting nil
  /// removes it.
  public subscript(name: String) -> Value? {
    get { storage[ExactText(name)] }
    set { storage[ExactText(name)] = newValue }
  }

  /// The names in order.
  public var keys: some RandomAccessCollection<String> { storage.keys.lazy.map(\.text) }

  /// The values in order.
  public var values: some RandomAccessCollection<Value> { storage.values }

  /// Appends a member. Returns false if there was one of this name, whose value is then replaced.
  mutating func append(_ name: String, _ value: Value) -> Bool {
    storage.updateValue(value, forKey: ExactText(name)) == nil
  }

  /// Changes the value of a member in place. Returns false if there is no such member.
  mutating func change<Failure: Error>(
    _ name: String, _ change: (inout Value) throws(Failure) -> Void
  ) throws(Failure) -> Bool {
    guard let index = storage.index(forKey: ExactText(name)) else { return false }
    try change(&storage.values[index])
    return true
  }

  /// Adds the members of another object; `combine` returns the value of a member that both have.
  public mutating func merge(_ other: JSONMembers, uniquingKeysWith combine: (Value, Value) -> Value) {
    storage.merge(other.storage.elements.lazy.map { ($0.key, $0.value) }, uniquingKeysWith: combine)
  }
}

extension JSONMembers: RandomAccessCollection {
  /// The index of the first member.
  public var startIndex: Int { 0 }
  /// The index after the last member.
  public var endIndex: Int { storage.count }
  /// The member at an index.
  public subscript(index: Int) -> (key: String, value: Value) {
    let member = storage.elements[index]
    return (member.key.text, member.value)
  }
}

extension JSONMembers: Hashable {
  /// Returns true if both have the same members, in any order.
  public static func == (left: JSONMembers, right: JSONMembers) -> Bool {
    left.count == right.count && left.storage.allSatisfy { right.storage[$0.key] == $0.value }
  }

  /// Hashes what equality compares, which ignores the order.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(count)
    var sum = 0
    for (name, value) in storage {
      var member = Hasher()
      member.combine(name)
      member.combine(value)
      sum &+= member.finalize()
    }
    hasher.combine(sum)
  }
}
