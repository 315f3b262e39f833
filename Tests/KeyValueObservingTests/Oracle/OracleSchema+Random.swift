import KeyValueModel
import TestKit

extension OracleSchema {
  /// Makes a schema of a few entities with keys of all kinds. `modes` are the values of `notifies` that its keys may
  /// have.
  static func random(modes: [String], _ random: inout SplitMix64) -> OracleSchema {
    var schema = OracleSchema(entities: [Entity(name: "A"), Entity(name: "B"), Entity(name: "C", parent: "A")])
    schema.addAttributes(modes, &random)
    schema.addToOnes(modes, &random)
    schema.addToManys(modes, &random)
    schema.addComputedKeys(modes, &random)
    schema.complete()
    return schema
  }

  private static func pick<Element>(_ elements: Element..., using random: inout SplitMix64) -> Element {
    elements[Int.random(in: elements.indices, using: &random)]
  }

  private static func mode(_ modes: [String], _ random: inout SplitMix64) -> String {
    modes.randomElement(using: &random) ?? "always"
  }

  private static func rule(_ random: inout SplitMix64) -> String {
    Int.random(in: 0..<8, using: &random) > 0 ? "nullify" : pick("cascade", "deny", using: &random)
  }

  private mutating func addAttributes(_ modes: [String], _ random: inout SplitMix64) {
    for index in 0..<3 {
      for number in 0..<2 {
        let type = number == 0 ? "integer" : Self.pick("integer", "number", "number", "string", "date", using: &random)
        let initial: Value? = type == "integer" && Bool.random(using: &random) ? .integer(Int64(number)) : nil
        entities[index].ownKeys.append(
          Key(
            name: "n\(index)\(number)", kind: .attribute(type, defaultValue: initial),
            notifies: Self.mode(modes, &random), isIndexed: Int.random(in: 0..<4, using: &random) == 0))
      }
    }
  }

  private mutating func addToOnes(_ modes: [String], _ random: inout SplitMix64) {
    for index in 0..<3 {
      let name = Self.pick("A", "B", "C", using: &random)
      var key = Key(
        name: "r\(index)", kind: .toOne(name, inverse: nil, rule: Self.rule(&random)),
        notifies: Self.mode(modes, &random), isIndexed: Int.random(in: 0..<4, using: &random) == 0)
      key.isOptional = index == 2 ? Int.random(in: 0..<4, using: &random) > 0 : true
      entities[index].ownKeys.append(key)
    }
    let mate = Key.Kind.toOne("A", inverse: "mate", rule: Self.rule(&random))
    entities[0].ownKeys.append(Key(name: "mate", kind: mate, notifies: Self.mode(modes, &random)))
    let far = Int.random(in: 0..<2, using: &random)
    let destination = entities[far].name
    entities[1].ownKeys.append(
      Key(
        name: "near", kind: .toOne(destination, inverse: "far", rule: Self.rule(&random)),
        notifies: Self.mode(modes, &random)))
    let kind = Key.Kind.toOne("B", inverse: "near", rule: Self.rule(&random))
    entities[far].ownKeys.append(Key(name: "far", kind: kind, notifies: Self.mode(modes, &random)))
  }

  private mutating func addToManys(_ modes: [String], _ random: inout SplitMix64) {
    func toMany(_ name: String, _ destination: Int, inverse: String?) -> Key {
      Key(
        name: name,
        kind: .toMany(
          .object(entities[destination].name), isOrdered: Bool.random(using: &random), inverse: inverse,
          rule: Self.rule(&random)),
        notifies: Self.mode(modes, &random))
    }

    // One to many, many to many, its own inverse, without inverse, and values.
    let (parent, child) = (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random))
    entities[parent].ownKeys.append(toMany("kids", child, inverse: "parent"))
    var key = Key(
      name: "parent", kind: .toOne(entities[parent].name, inverse: "kids", rule: Self.rule(&random)),
      notifies: Self.mode(modes, &random))
    key.isOptional = Int.random(in: 0..<6, using: &random) > 0
    entities[child].ownKeys.append(key)
    let (left, right) = (Int.random(in: 0..<3, using: &random), Int.random(in: 0..<3, using: &random))
    entities[left].ownKeys.append(toMany("outs", right, inverse: "ins"))
    entities[right].ownKeys.append(toMany("ins", left, inverse: "outs"))
    entities[0].ownKeys.append(toMany("peers", 0, inverse: "peers"))
    for number in 0..<2 {
      entities[Int.random(in: 0..<3, using: &random)].ownKeys.append(
        toMany("l\(number)", Int.random(in: 0..<3, using: &random), inverse: nil))
      let type = Self.pick("integer", "number", "string", "date", using: &random)
      entities[Int.random(in: 0..<3, using: &random)].ownKeys.append(
        Key(
          name: "v\(number)",
          kind: .toMany(.plain(type), isOrdered: Bool.random(using: &random), inverse: nil, rule: "nullify"),
          notifies: Self.mode(modes, &random)))
    }
  }

  private mutating func addComputedKeys(_ modes: [String], _ random: inout SplitMix64) {
    for number in 0..<10 {
      let owner = Int.random(in: 0..<3, using: &random)
      let path = randomPath(entities[owner].name, upTo: 3, mayCross: true, &random)
      add(Key(name: "c\(number)", kind: .computed(path), notifies: Self.mode(modes, &random)), to: owner)
    }
    // A subclass that redeclares a computed key.
    for key in entities[0].ownKeys where !key.isStored && Bool.random(using: &random) {
      let path = randomPath("C", upTo: 3, mayCross: true, &random)
      guard sort("C", path: path) == sort("A", key.name) else { continue }
      add(Key(name: key.name, kind: .computed(path), notifies: Self.mode(modes, &random)), to: 2)
    }
  }

  /// Adds a key unless the schema would then be invalid: by a cycle, for instance.
  private mutating func add(_ key: Key, to entity: Int) {
    var candidate = self
    candidate.entities[entity].ownKeys.append(key)
    if (try? Schema(yaml: candidate.yaml)) != nil { self = candidate }
  }

  // MARK: Paths

  /// Makes a path that the schema allows. With `mayCross` it may continue after a collection; such a path cannot be
  /// observed.
  func randomPath(
    _ entity: String, upTo length: Int, mayCross: Bool = false, _ random: inout SplitMix64
  ) -> [String] {
    var path: [String] = []
    var current = entity
    for step in 0..<Int.random(in: 1...length, using: &random) {
      let names = keys(current).map(\.name)
      // In most cases continues through objects as long as possible, and often ends at a collection.
      let pool: [String]
      switch Int.random(in: 0..<5, using: &random) {
      case 0 where step < length - 1, 1 where step < length - 1: pool = names.filter { isObject(sort(current, $0)) }
      case 2, 3: pool = names.filter { isList(sort(current, $0)) }
      default: pool = names
      }
      guard let name = Self.pickName(pool.isEmpty ? names : pool, &random) else { break }
      path.append(name)
      switch sort(current, name) {
      case .object(let next): current = next
      case .list(let element):
        let isStored = key(current, name)?.isToMany == true
        if mayCross, isStored, case .object(let next) = element, Int.random(in: 0..<6, using: &random) == 0 {
          return path + [keys(next).map(\.name).randomElement(using: &random) ?? "self"]
        }
        return path + randomOperation(element, isStored: isStored, &random)
      default: return path
      }
    }
    return path
  }

  /// Picks a name, in half of the cases that of a computed key if there is one: computed keys that read computed keys.
  private static func pickName(_ names: [String], _ random: inout SplitMix64) -> String? {
    let computed = names.filter { $0.hasPrefix("c") }
    return (Bool.random(using: &random) && !computed.isEmpty ? computed : names).randomElement(using: &random)
  }

  private func isObject(_ sort: Sort?) -> Bool { if case .object = sort { true } else { false } }
  private func isList(_ sort: Sort?) -> Bool { if case .list = sort { true } else { false } }

  /// Makes an operator with the path after it, or nothing.
  private func randomOperation(_ element: Sort, isStored: Bool, _ random: inout SplitMix64) -> [String] {
    if Int.random(in: 0..<3, using: &random) == 0 { return [] }
    if Int.random(in: 0..<6, using: &random) == 0 { return ["@count"] }
    var right = ["self"]
    var member = element
    if isStored, case .object(let entity) = element, Int.random(in: 0..<6, using: &random) > 0 {
      right = simplePath(entity, &random)
      member = sort(entity, path: right) ?? member
    }
    var operations = ["@unionOfObjects", "@distinctUnionOfObjects"]
    switch member {
    case .plain("integer"), .plain("number"): operations += ["@sum", "@sum", "@sum", "@avg", "@avg", "@min", "@max"]
    case .plain: operations += ["@min", "@max", "@min", "@max"]
    case .object: break
    case .list: operations = ["@unionOfArrays", "@distinctUnionOfArrays"]
    }
    return [operations.randomElement(using: &random) ?? "@unionOfObjects"] + right
  }

  /// Makes a path without operators that does not continue after a collection.
  private func simplePath(_ entity: String, _ random: inout SplitMix64) -> [String] {
    let names = keys(entity).map(\.name)
    let numbers = names.filter { [.plain("integer"), .plain("number")].contains(sort(entity, $0)) }
    let pool = Int.random(in: 0..<3, using: &random) > 0 && !numbers.isEmpty ? numbers : names
    let name = Self.pickName(pool, &random) ?? "self"
    guard case .object(let next) = sort(entity, name), Int.random(in: 0..<3, using: &random) > 0 else { return [name] }
    return [name, keys(next).map(\.name).randomElement(using: &random) ?? "n00"]
  }
}
