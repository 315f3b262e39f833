import KeyValueModel
import TestKit

/// Random queries over an oracle's schema: filters over everything that CEL can read, orders and sections by everything
/// that has an order.
struct RandomQueries {
  let schema: OracleSchema
  let compiled: Schema

  /// Makes a query, in most cases over the entity with a subclass.
  func query(_ random: inout SplitMix64, of entity: String? = nil) throws -> Query {
    let entity = entity ?? ["A", "A", "A", "B", "C"].randomElement(using: &random) ?? "A"
    var words = Query.Words(entity: entity)
    for _ in 0..<6 {
      if Int.random(in: 0..<4, using: &random) > 0 { words.filter = filter(entity, &random) }
      words.sort = sort(entity, &random)
      words.section = Int.random(in: 0..<3, using: &random) == 0 ? path(entity, &random) : nil
      words.limit = Bool.random(using: &random) ? Int.random(in: 1...6, using: &random) : nil
      words.keys = keys(entity, &random)
      if Bool.random(using: &random) { words.aggregate = aggregates(entity, &random) }
      if let query = try? Query(words, in: compiled) { return query }
    }
    return try Query(Query.Words(entity: entity), in: compiled)
  }

  /// Returns the query with some of its words changed.
  func variation(of query: Query, _ random: inout SplitMix64) throws -> Query {
    for _ in 0..<6 {
      let other = try self.query(&random, of: query.entity.name)
      var words = query.words
      if Bool.random(using: &random) { words.filter = other.words.filter }
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1: words.sort = other.words.sort
      case 2: words.sort = words.sort.map { $0.hasPrefix("-") ? String($0.dropFirst()) : "-" + $0 }
      default: break
      }
      if Bool.random(using: &random) { words.section = other.words.section }
      if Bool.random(using: &random) { words.limit = other.words.limit }
      if Bool.random(using: &random) { words.keys = other.words.keys }
      if Bool.random(using: &random) { words.aggregate = other.words.aggregate }
      if let found = try? Query(words, in: compiled) { return found }
    }
    return query
  }

  private func keys(_ entity: String, _ random: inout SplitMix64) -> [String]? {
    guard Int.random(in: 0..<4, using: &random) > 0 else { return nil }
    let names = schema.keys(entity).map(\.name).shuffled(using: &random)
    let keys = Array(names.prefix(Int.random(in: 0...2, using: &random)))
    let paths = (0..<Int.random(in: 0...2, using: &random)).map { _ in
      schema.randomPath(entity, upTo: 3, &random).joined(separator: ".")
    }
    return (keys + paths).shuffled(using: &random)
  }

  private func aggregates(_ entity: String, _ random: inout SplitMix64) -> String {
    (0..<Int.random(in: 1...4, using: &random)).map { _ in
      let path = schema.randomPath(entity, upTo: 3, &random).prefix { !$0.hasPrefix("@") }
      let text = path.joined(separator: ".")
      switch schema.sort(entity, path: Array(path)) {
      case .plain("integer"), .plain("number"):
        return (["@sum", "@avg", "@min", "@max"].randomElement(using: &random) ?? "@sum") + "." + text
      // Means are not binary fractions; the oracle cannot add them exactly.
      case .plain("string"), .plain("date"), .plain("average"):
        return (Bool.random(using: &random) ? "@min." : "@max.") + text
      default: return "@count"
      }
    }
    .joined(separator: ",")
  }

  private func sort(_ entity: String, _ random: inout SplitMix64) -> String? {
    let count = Int.random(in: 0...3, using: &random)
    guard count > 0 else { return nil }
    return (0..<count).map { _ in (Bool.random(using: &random) ? "-" : "") + path(entity, &random) }
      .joined(separator: ",")
  }

  /// Makes a path to a value that has an order.
  private func path(_ entity: String, _ random: inout SplitMix64) -> String {
    for _ in 0..<8 {
      let path = schema.randomPath(entity, upTo: 3, &random)
      switch schema.sort(entity, path: path) {
      case .plain, .object: return path.joined(separator: ".")
      default: continue
      }
    }
    return attribute(entity, &random)
  }

  private func attribute(_ entity: String, _ random: inout SplitMix64) -> String {
    schema.keys(entity).map(\.name).filter { $0.hasPrefix("n") && $0 != "near" }.randomElement(using: &random) ?? "n00"
  }

  // MARK: Filters

  private func filter(_ entity: String, _ random: inout SplitMix64) -> String {
    let first = condition(entity, &random)
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return "\(first) || \(condition(entity, &random))"
    case 1, 2: return "\(first) && \(condition(entity, &random))"
    case 3: return "!(\(first))"
    default: return first
    }
  }

  private func condition(_ entity: String, _ random: inout SplitMix64) -> String {
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return "n00 == \(Int.random(in: 1...3, using: &random))".replacing("n00", with: integer(entity))
    case 1:
      let name = attribute(entity, &random)
      return comparison("this.\(name)", schema.sort(entity, name), &random)
    case 2: return aggregate(entity, &random)
    default:
      let path = schema.randomPath(entity, upTo: 3, &random)
      let plain = Array(path.prefix { !$0.hasPrefix("@") })
      return comparison("this." + plain.joined(separator: "."), schema.sort(entity, path: plain), &random)
    }
  }

  private func integer(_ entity: String) -> String { entity == "B" ? "n10" : "n00" }

  private func comparison(_ text: String, _ sort: OracleSchema.Sort?, _ random: inout SplitMix64) -> String {
    let operation = ["==", "==", "!=", ">", "<="].randomElement(using: &random) ?? "=="
    if Int.random(in: 0..<6, using: &random) == 0 { return "\(text) \(operation == "==" ? "==" : "!=") null" }
    switch sort {
    case .plain("integer"): return "\(text) \(operation) \(Int.random(in: 1...3, using: &random))"
    case .plain("number"), .plain("average"):
      let number: Double = [0.0, 0.5, 2.25].randomElement(using: &random) ?? 0
      return "\(text) \(operation) \(number)"
    case .plain("string"):
      let word: String = ["a", "b", "ab"].randomElement(using: &random) ?? "a"
      return "\(text) \(operation) '\(word)'"
    case .plain("date"):
      let moment: String = OracleFold.dates.prefix(4).randomElement(using: &random)?.text ?? ""
      return "\(text) \(operation) timestamp('\(moment)')"
    case .object(let entity):
      let mark = operation == "==" ? "==" : "!="
      return "\(text) \(mark) '\(entity)/\(Int.random(in: 1...3, using: &random))'"
    case .list: return "size(\(text)) \(operation) \(Int.random(in: 0...3, using: &random))"
    default: return "true"
    }
  }

  /// Makes a condition on the members of a collection.
  private func aggregate(_ entity: String, _ random: inout SplitMix64) -> String {
    let lists = schema.keys(entity).filter {
      if case .toMany(.object, _, _, _) = $0.kind { true } else { false }
    }
    guard let list = lists.randomElement(using: &random), let member = list.relationship?.destination else {
      return "true"
    }
    let path = schema.randomPath(member, upTo: 2, &random).prefix { !$0.hasPrefix("@") }
    let inner = comparison("m." + path.joined(separator: "."), schema.sort(member, path: Array(path)), &random)
    switch Int.random(in: 0..<4, using: &random) {
    case 0: return "\(list.name).exists(m, \(inner))"
    case 1: return "\(list.name).all(m, \(inner))"
    case 2: return "size(\(list.name)) > \(Int.random(in: 0...2, using: &random))"
    default: return "sum(\(list.name).map(m, m.\(integer(member)))) > \(Int.random(in: 1...4, using: &random))"
    }
  }
}
