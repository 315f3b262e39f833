import KeyValueModel
import TestKit

/// A random binding of a cell over the data of `Staff`.
enum SoakCell {
  /// A cell of an object.
  case object(String, keyPaths: [String])
  case query([(name: String, value: Value)])
  case empty

  /// Key paths of each entity: values, far values, to-manys and aggregates.
  private static let keyPaths = [
    "Employee": ["salary", "name", "tags", "department.name", "department.employees", "department.total"],
    "Department": ["name", "employees", "total", "employees.@count", "employees.@max.salary"],
  ]

  private static let filters: [String?] = [
    nil, "salary > 10.0", "name == 'n1'", "department.name == 'd1'", "salary == null",
  ]
  private static let orders: [String?] = [nil, "salary", "-salary,name", "department.name,-name"]

  static func random(of objects: [String], _ random: inout SplitMix64) -> SoakCell {
    switch Int.random(in: 0..<9, using: &random) {
    case 0: return .empty
    case 1...4:
      guard let object = objects.randomElement(using: &random) else { return .empty }
      let paths = keyPaths[object.hasPrefix("Department") ? "Department" : "Employee"] ?? []
      return .object(
        object, keyPaths: Array(paths.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))))
    default: return .query(query(&random))
    }
  }

  /// Makes a random query. `isSectioned` determines if it has sections; nil leaves it to chance.
  static func query(_ random: inout SplitMix64, isSectioned: Bool? = nil) -> [(name: String, value: Value)] {
    func text(_ text: String?) -> Value { text.map(Value.string) ?? .null }
    let sections = ["name", "department.name"]
    let hasSections = isSectioned ?? Bool.random(using: &random)
    return [
      ("entity", .string("Employee")), ("filter", text(filters.randomElement(using: &random) ?? nil)),
      ("sort", text(orders.randomElement(using: &random) ?? nil)),
      ("section", text(hasSections ? sections.randomElement(using: &random) : nil)),
      ("limit", Bool.random(using: &random) ? .null : .integer(Int64.random(in: 1...8, using: &random))),
      ("keys", Bool.random(using: &random) ? .null : .array([.string("name")])),
    ]
  }

  /// The binding as a client sends it.
  func body(visible: Bool) -> String {
    var body = JSONObject()
    switch self {
    case .object(let object, let keyPaths):
      body["object"] = .string(object)
      body["keyPaths"] = .array(keyPaths.map(Value.string))
    case .query(let members): for (name, value) in members { body[name] = value }
    case .empty: body["object"] = .null
    }
    body["visible"] = .bool(visible)
    return Value.object(body).json
  }

  /// True if the query has sections.
  var isSectioned: Bool {
    guard case .query(let members) = self else { return false }
    return members.contains { $0.name == "section" && !$0.value.isNull }
  }
}
