import KeyValueModel
import TestKit

/// Random writes, the same for two servers: the server never makes the names of objects, and no name is reused after a
/// deletion.
struct ShadowTraffic {
  /// A request that writes.
  struct Write {
    var method = "POST"
    var path = "/v1/transactions"
    var body: String?
    var writer: String?
  }

  private var random: SplitMix64
  private var employees = (1...6).map { "Employee/\($0)" }
  private var created = 6

  init(seed: UInt64) { random = SplitMix64(seed: seed) }

  /// The write of the first objects.
  static let founding: Write = {
    var operations = (1...3).flatMap { number in
      [
        #"{"op":"create","object":"Department/\#(number)","value":{"name":"D\#(number)"}}"#,
        #"{"op":"create","object":"Tag/\#(number)","value":{"name":"T\#(number)"}}"#,
        #"{"op":"create","object":"Account/\#(number)","value":{"balance":\#(number)}}"#,
      ]
    }
    operations += (1...6).map { number in
      """
      {"op":"create","object":"Employee/\(number)","value":{"firstName":"F\(number)","lastName":"L\(number)",\
      "salary":\(number * 10),"department":"Department/\(number % 2 + 1)"}}
      """
    }
    operations += (1...2).map { number in
      #"{"op":"set","object":"Account/\#(number)","keyPath":"owner","value":"Employee/\#(number)"}"#
    }
    return Write(body: #"{"operations":[\#(operations.joined(separator: ","))]}"#)
  }()

  /// Makes the next write, which servers may refuse.
  mutating func next() -> Write {
    var write = Write()
    switch Int.random(in: 0..<6, using: &random) {
    case 0:
      let (object, key, value) = setting()
      write = Write(method: "PUT", path: "/v1/objects/\(object)/\(key)", body: value)
    case 1:
      let operation = ["union", "minus", "intersect", "set"].randomElement(using: &random) ?? "set"
      write = Write(path: "/v1/objects/\(employee())/tags?operation=\(operation)", body: #"["\#(tag())","\#(tag())"]"#)
    default:
      let operations = (0..<Int.random(in: 1...4, using: &random)).flatMap { _ in self.operations() }
      write.body = #"{"operations":[\#(operations.joined(separator: ","))]}"#
    }
    if Bool.random(using: &random) { write.writer = "w\(Int.random(in: 0..<3, using: &random))" }
    return write
  }

  private mutating func operations() -> [String] {
    switch Int.random(in: 0..<16, using: &random) {
    case 0..<5:
      let (object, key, value) = setting()
      return [#"{"op":"set","object":"\#(object)","keyPath":"\#(key)","value":\#(value)}"#]
    case 5, 6:
      created += 1
      employees.append("Employee/\(created)")
      return [
        """
        {"op":"create","object":"Employee/\(created)","value":{"firstName":"F","lastName":"L\(created)",\
        "salary":\(number()),"department":"\(department())"}}
        """
      ]
    case 7:
      guard employees.count > 3, let index = employees.indices.randomElement(using: &random) else { return [] }
      return [#"{"op":"delete","object":"\#(employees.remove(at: index))"}"#]
    case 8, 9:
      let (department, index) = (department(), Int.random(in: 0..<3, using: &random))
      return [
        #"{"op":"insert","object":"\#(department)","keyPath":"employees","index":[\#(index)],"#
          + #""value":["\#(employee())"]}"#
      ]
    case 10:
      let index = Int.random(in: 0..<2, using: &random)
      return [#"{"op":"remove","object":"\#(department())","keyPath":"employees","index":[\#(index)]}"#]
    case 11:
      return [#"{"op":"set","object":"\#(employee())","keyPath":"friends","value":["\#(employee())"]}"#]
    case 12:
      return [#"{"op":"patch","object":"\#(employee())","value":{"firstName":"P\#(number())","salary":\#(number())}}"#]
    case 13:
      return [#"{"op":"insert","object":"\#(tag())","keyPath":"holders","value":["\#(employee())"]}"#]
    default:
      return bracket()
    }
  }

  /// Makes a bracket, often an empty one, which is still a change.
  private mutating func bracket() -> [String] {
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return Self.bracket(account(), "secret")
    case 1: return Self.bracket(account(), "owner")
    case 2: return Self.bracket(department(), ["name", "employees", "totalSalary"].randomElement(using: &random) ?? "")
    default:
      let account = account()
      let set = #"{"op":"set","object":"\#(account)","keyPath":"secret","value":\#(number())}"#
      return Self.bracket(account, "secret", around: [set])
    }
  }

  private static func bracket(_ object: String, _ key: String, around operations: [String] = []) -> [String] {
    let named = #""object":"\#(object)","key":"\#(key)""#
    return [#"{"op":"willChange",\#(named)}"#] + operations + [#"{"op":"didChange",\#(named)}"#]
  }

  private mutating func setting() -> (object: String, key: String, value: String) {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: return (employee(), "salary", "\(number())")
    case 1: return (employee(), "lastName", "\"L\(number())\"")
    case 2: return (employee(), "department", Bool.random(using: &random) ? "\"\(department())\"" : "null")
    case 3: return (department(), "head", "\"\(employee())\"")
    case 4: return (account(), "balance", "\(number())")
    case 5: return (account(), "owner", "\"\(employee())\"")
    case 6: return (department(), "name", "\"D\(number())\"")
    default: return (department(), "employees", #"["\#(employee())"]"#)
    }
  }

  private mutating func employee() -> String { employees.randomElement(using: &random) ?? "Employee/1" }
  private mutating func department() -> String { "Department/\(Int.random(in: 1...3, using: &random))" }
  private mutating func tag() -> String { "Tag/\(Int.random(in: 1...3, using: &random))" }
  private mutating func account() -> String { "Account/\(Int.random(in: 1...3, using: &random))" }
  private mutating func number() -> Int { Int.random(in: 0..<40, using: &random) }
}
