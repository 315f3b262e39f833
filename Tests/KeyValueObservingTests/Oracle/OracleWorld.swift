import KeyValueModel

/// The objects of the oracle: dictionaries, copied as a whole to remember a state. Collections are plain arrays, and
/// computed keys are evaluated when they are read.
struct OracleWorld {
  struct Refused: Error {}

  /// A key of an object.
  struct Link: Hashable {
    let object: String
    let key: String
  }

  /// The values that were read since the last change, so that a test does not take minutes.
  private final class Memory {
    var values: [String: [String: Value]] = [:]
  }

  let schema: OracleSchema
  var objects: [String: [String: Value]] = [:] {
    didSet { memory = Memory() }
  }
  /// The settings of the current operation, in order.
  var settings: [Setting] = []
  /// The objects that the current operation has created.
  var made: Set<String> = []
  private var memory = Memory()

  init(schema: OracleSchema) {
    self.schema = schema
  }

  static func entity(_ object: String) -> String { String(object.prefix { $0 != "/" }) }

  func key(_ object: String, _ name: String) -> OracleSchema.Key? { schema.key(Self.entity(object), name) }

  func storedKeys(_ object: String) -> [OracleSchema.Key] { schema.keys(Self.entity(object)).filter(\.isStored) }

  // MARK: Reading

  func target(_ object: String, _ key: String) -> String? {
    guard case .reference(let reference) = read(object, key) else { return nil }
    return reference.text
  }

  func list(_ object: String, _ key: String) -> [Value] { objects[object]?[key]?.elements ?? [] }

  func read(_ object: String, _ name: String) -> Value {
    guard let values = objects[object] else { return .null }
    guard case .computed(let path) = key(object, name)?.kind else { return values[name] ?? .null }
    if let known = memory.values[object]?[name] { return known }
    let value = read(object, path: path)
    memory.values[object, default: [:]][name] = value
    return value
  }

  func read(_ object: String, path: [String]) -> Value {
    if let position = path.firstIndex(where: { $0.hasPrefix("@") }) {
      let collection = read(object, path: Array(path[..<position]))
      guard let elements = collection.elements else { return .null }
      let values = elements.map { read(member: $0, Array(path[(position + 1)...])) }
      let value = OracleFold.value(of: path[position], over: values)
      // A sum of numbers is a number, even if there are none.
      if case .integer(let whole) = value, schema.sort(Self.entity(object), path: path) == .plain("number") {
        return .number(Double(whole))
      }
      return value
    }
    guard let name = path.first else { return .null }
    let value = read(object, name)
    return path.count > 1 ? read(behind: value, Array(path.dropFirst())) : value
  }

  private func read(behind value: Value, _ path: [String]) -> Value {
    switch value {
    case .reference(let next): read(next.text, path: path)
    case .array(let elements): .array(elements.map { read(behind: $0, path) })
    default: .null
    }
  }

  private func read(member: Value, _ path: [String]) -> Value {
    path.isEmpty || path == ["self"] ? member : read(behind: member, path)
  }

  /// Returns the same objects with other values of some keys.
  func with(_ values: [Link: Value]) -> OracleWorld {
    var world = self
    for (link, value) in values where objects[link.object] != nil { world.objects[link.object]?[link.key] = value }
    return world
  }

  /// Returns the keys that a path reads directly, including those of every member that it is computed from.
  func links(_ object: String, _ path: [String]) -> [Link] {
    guard let name = path.first else { return [] }
    var rest = Array(path.dropFirst())
    if rest.first?.hasPrefix("@") == true { rest.removeFirst() }
    if rest == ["self"] { rest = [] }
    return [Link(object: object, key: name)] + (rest.isEmpty ? [] : links(behind: read(object, name), rest))
  }

  private func links(behind value: Value, _ path: [String]) -> [Link] {
    switch value {
    case .reference(let next): links(next.text, path)
    case .array(let elements): elements.flatMap { links(behind: $0, path) }
    default: []
    }
  }
}

/// The collection operators, applied to the members' values.
enum OracleFold {
  /// The order of the moments that the tests' dates name.
  static let dates: [(text: String, moment: Int)] = [
    ("2010-03-01T09:30:00+02:00", 1), ("2010-03-01T07:30:00Z", 1), ("2010-03-01T08:00:00Z", 2),
    ("2010-03-01T00:00:00-09:00", 3), ("2010-03-01", 0),
  ]

  static func value(of operation: String, over values: [Value]) -> Value {
    let present = values.filter { !$0.isNull }
    switch operation {
    case "@count": return .integer(Int64(values.count))
    case "@sum": return sum(values)
    case "@avg":
      guard !values.isEmpty else { return .null }
      return .number((double(sum(values)) ?? 0) / Double(values.count))
    case "@min": return present.min(by: precedes) ?? .null
    case "@max": return present.max(by: precedes) ?? .null
    case "@unionOfObjects": return .array(present)
    case "@distinctUnionOfObjects": return .array(distinct(present))
    case "@unionOfArrays": return .array(flat(values))
    default: return .array(distinct(flat(values)))
    }
  }

  private static func flat(_ values: [Value]) -> [Value] {
    values.flatMap { $0.elements ?? [] }.filter { !$0.isNull }
  }

  private static func distinct(_ values: [Value]) -> [Value] {
    values.reduce(into: []) { found, value in if !found.contains(value) { found.append(value) } }
  }

  /// Returns the sum. The tests' fractions are binary, and their sums exact.
  private static func sum(_ values: [Value]) -> Value {
    var (whole, total) = (true, 0.0)
    for value in values {
      if case .number = value { whole = false }
      total += double(value) ?? 0
    }
    return whole ? .integer(Int64(total)) : .number(total)
  }

  private static func double(_ value: Value) -> Double? {
    switch value {
    case .integer(let integer): Double(integer)
    case .number(let number): number
    default: nil
    }
  }

  /// Orders by number, by moment or by bytes, and equal values by bytes.
  private static func precedes(_ left: Value, _ right: Value) -> Bool {
    if let left = double(left), let right = double(right) { return left < right }
    if let leftMoment = moment(left), let rightMoment = moment(right), leftMoment != rightMoment {
      return leftMoment < rightMoment
    }
    return Array(left.json.utf8).lexicographicallyPrecedes(Array(right.json.utf8))
  }

  private static func moment(_ value: Value) -> Int? {
    guard case .string(let text) = value else { return nil }
    return dates.first { $0.text == text }?.moment
  }

  /// Returns values in the order of an unordered collection.
  static func sorted(_ values: [Value]) -> [Value] {
    values.sorted { left, right in
      if let left = double(left), let right = double(right) { return left < right }
      let texts = [left, right].map { value -> [UInt8] in
        switch value {
        case .string(let text): Array(text.utf8)
        case .reference(let reference): Array(reference.text.utf8)
        default: []
        }
      }
      return texts[0].lexicographicallyPrecedes(texts[1])
    }
  }
}
