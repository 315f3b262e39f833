@testable import CEL

/// The model that tests evaluate in: a department with its employees, which is `this`.
struct StaffModel: ExpressionEnvironment, ExpressionActivation {
  static let entities: [String: [String: ExpressionType]] = [
    "Department": [
      "name": .string, "budget": .double, "employees": .list(.object("Employee")), "head": .object("Employee"),
      "settings": .dyn, "ratings": .list(.double), "counts": .list(.int), "parent": .object("Department"),
      "founded": .timestamp, "open": .bool,
    ],
    "Employee": [
      "name": .string, "salary": .double, "age": .int, "department": .object("Department"), "tags": .list(.string),
      "manager": .object("Employee"), "reports": .list(.object("Employee")), "hired": .timestamp,
    ],
  ]

  static func sortedKeys(_ entity: String) -> [String] { (entities[entity]?.keys).map { $0.sorted() } ?? [] }

  let root: StaffObject
  /// The values of collection functions that were extracted.
  var functionValues: [ExpressionValue] = []

  init(_ root: StaffObject = StaffModel.department()) { self.root = root }

  func type(ofVariable name: String) -> ExpressionType? {
    name == "this" ? .object("Department") : type(ofField: name, inObject: "Department")
  }

  func index(ofVariable name: String) -> Int? { StaffModel.sortedKeys("Department").firstIndex(of: name) }

  func type(ofField name: String, inObject object: String) -> ExpressionType? { StaffModel.entities[object]?[name] }

  func index(ofField name: String, inObject object: String) -> Int? {
    StaffModel.sortedKeys(object).firstIndex(of: name)
  }

  func value(
    ofVariable name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    name == "this" ? .object(root) : try root.field(named: name, index: index, budget: &budget)
  }

  func value(
    ofCollectionFunction index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    functionValues[index]
  }

  /// Three employees, of whom the last has neither salary nor manager.
  static func department() -> StaffObject {
    let small = StaffObject("Department", 3, ["name": .string("Sales")])
    let ann = StaffObject(
      "Employee", 1,
      [
        "name": .string("Ann"), "salary": .double(100.1), "age": .int(40), "department": .object(small),
        "tags": .list([.string("a"), .string("b")]), "reports": .list([]),
        "hired": ExpressionTimestamp(seconds: 1_000_000_000).map { .timestamp($0) } ?? .null,
      ])
    let bob = StaffObject(
      "Employee", 2,
      [
        "name": .string("Bob"), "salary": .double(0.2), "age": .int(30), "manager": .object(ann),
        "department": .object(small), "tags": .list([.string("b")]), "reports": .list([]),
      ])
    let cyd = StaffObject("Employee", 3, ["name": .string("Cyd"), "age": .int(20), "tags": .list([])])
    return StaffObject(
      "Department", 3,
      [
        "name": .string("Sales"), "budget": .double(1_000.5), "head": .object(ann),
        "employees": .lazyList(StaffList([.object(ann), .object(bob), .object(cyd)])),
        "ratings": .list(Array(repeating: .double(0.1), count: 10)), "counts": .list([.int(3), .null, .int(4)]),
        "settings": (try? ExpressionMap([(.string("limit"), .int(5))])).map { .map($0) } ?? .null, "open": .bool(true),
      ])
  }
}

extension StaffModel {
  /// Returns the value that a text evaluates to, or its error, as text.
  func outcome(of text: String, limits: ExpressionLimits = ExpressionLimits()) -> String {
    do {
      let checked = try Expression(parsing: text, limits: limits).checked(in: self)
      var budget = EvaluationBudget(limits)
      return Canonical.text(checked.evaluate(self, budget: &budget))
    } catch {
      return "\(error)"
    }
  }
}

/// An object of the tests' model, with its keys in a dictionary.
final class StaffObject: ExpressionObject {
  let typeName: String
  let identity: String
  private let fields: [String: ExpressionValue]

  init(_ typeName: String, _ number: Int, _ fields: [String: ExpressionValue]) {
    self.typeName = typeName
    identity = "\(typeName)/\(number)"
    self.fields = fields
  }

  func field(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    guard let names = StaffModel.entities[typeName] else { throw EvaluationError(.noSuchKey, name) }
    // The index that the check assigned must be that of the key.
    if index >= 0, StaffModel.sortedKeys(typeName)[index] != name { throw EvaluationError(.unavailable, name) }
    guard names[name] != nil else { throw EvaluationError(.noSuchKey, name) }
    return fields[name] ?? .null
  }
}

/// A lazy list that counts how often it is asked for an element.
final class StaffList: ExpressionSequence {
  private let elements: [ExpressionValue]

  init(_ elements: [ExpressionValue]) { self.elements = elements }

  var count: Int { elements.count }

  func element(at index: Int) throws(EvaluationError) -> ExpressionValue { elements[index] }
}
