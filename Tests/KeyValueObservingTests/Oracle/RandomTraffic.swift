import KeyValueModel
import TestKit

/// Random operations on a few objects of an oracle's schema; most of them can succeed.
struct RandomTraffic {
  let schema: OracleSchema
  var random: SplitMix64
  /// The maximum number of objects of an entity.
  let idCount: Int

  init(schema: OracleSchema, random: SplitMix64, idCount: Int = 3) {
    self.schema = schema
    self.random = random
    self.idCount = idCount
  }

  private func names(_ entity: String) -> [String] { (1...idCount).map { "\(entity)/\($0)" } }

  mutating func object() -> String {
    names(["A", "A", "B", "C"].randomElement(using: &random) ?? "A").randomElement(using: &random) ?? "A/1"
  }

  /// Makes the operations of one transaction. In most cases its brackets are balanced.
  mutating func transaction(_ world: OracleWorld) -> [KeyValueModel.Operation] {
    if Int.random(in: 0..<12, using: &random) == 0 { return emptyBracket(world) }
    var operations: [KeyValueModel.Operation] = []
    var open: [(Reference, String)] = []
    let count = Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 2...9, using: &random) : 1
    for _ in 0..<count {
      guard count > 1, Int.random(in: 0..<3, using: &random) == 0 else {
        operations.append(operation(world))
        // A deleted object is often created again at once.
        if count > 1, case .delete(let object)? = operations.last, Bool.random(using: &random) {
          operations.append(.put(object, body(object.text, world)))
        }
        continue
      }
      if !open.isEmpty, Bool.random(using: &random) {
        let (object, key) = open.remove(at: Int.random(in: open.indices, using: &random))
        operations.append(.didChange(object, key: key))
      } else if let object = Reference(existing(world)) {
        // Often around the key that is set next.
        let key = schema.keys(object.entity).randomElement(using: &random)?.name ?? "n00"
        operations.append(.willChange(object, key: key))
        open.append((object, key))
        if schema.key(object.entity, key)?.isToMany == true {
          operations.append(collectionOperation(object, path: [key], world))
        } else if Bool.random(using: &random), let value = value(object.text, key, world) {
          operations.append(.set(object, keyPath: key, value))
        }
      }
    }
    for (object, key) in open.shuffled(using: &random) where Int.random(in: 0..<60, using: &random) > 0 {
      operations.append(.didChange(object, key: key))
    }
    return operations
  }

  /// Makes a bracket around another bracket, or around nothing, without a write.
  private mutating func emptyBracket(_ world: OracleWorld) -> [KeyValueModel.Operation] {
    var operations: [KeyValueModel.Operation] = []
    for _ in 0..<Int.random(in: 1...2, using: &random) {
      guard let object = Reference(existing(world)) else { continue }
      let key = schema.keys(object.entity).randomElement(using: &random)?.name ?? "n00"
      operations = [.willChange(object, key: key)] + operations + [.didChange(object, key: key)]
    }
    return operations
  }

  private mutating func existing(_ world: OracleWorld) -> String {
    world.objects.keys.sorted().randomElement(using: &random) ?? object()
  }

  private mutating func operation(_ world: OracleWorld) -> KeyValueModel.Operation {
    let text = Int.random(in: 0..<12, using: &random) == 0 ? object() : existing(world)
    guard let reference = Reference(text) else { preconditionFailure("\(text) is no reference") }
    // In most cases there should be some objects to work with.
    let free = ["A", "B", "C"].flatMap(names).filter { world.objects[$0] == nil }
    if Int.random(in: 0..<16, using: &random) < free.count, Bool.random(using: &random),
      let name = free.randomElement(using: &random), let reference = Reference(name)
    {
      return Bool.random(using: &random) ? .create(reference, body(name, world)) : .put(reference, body(name, world))
    }
    switch Int.random(in: 0..<48, using: &random) {
    case 0, 1: return .delete(reference)
    case 2: return .create(reference, body(text, world))
    case 3: return .put(reference, body(text, world))
    case 4..<8: return .patch(reference, body(text, world, rarely: true))
    case 8..<28:
      var path = [schema.keys(reference.entity).filter(\.isToMany).randomElement(using: &random)?.name ?? "peers"]
      // Sometimes through another object.
      if Int.random(in: 0..<6, using: &random) == 0 { path = schema.randomPath(reference.entity, upTo: 3, &random) }
      return collectionOperation(reference, path: path, world)
    default:
      var path = [world.storedKeys(text).randomElement(using: &random)?.name ?? "n00"]
      if Int.random(in: 0..<4, using: &random) == 0 { path = schema.randomPath(reference.entity, upTo: 3, &random) }
      var owner: String? = text
      for name in path.dropLast() { owner = owner.flatMap { world.target($0, name) } }
      guard let name = path.last, let value = value(owner ?? text, name, world) else {
        return .patch(reference, body(text, world, rarely: true))
      }
      return .set(reference, keyPath: path.joined(separator: "."), value)
    }
  }

  // MARK: Values

  /// Makes a value that suits a stored key; nil for a computed one.
  mutating func value(_ object: String, _ key: String, _ world: OracleWorld) -> Value? {
    switch world.key(object, key)?.kind {
    case .attribute(let type, _): return Int.random(in: 0..<4, using: &random) == 0 ? .null : plain(type)
    case .toOne(let destination, _, _):
      if Int.random(in: 0..<5, using: &random) == 0 { return .null }
      return target(destination, world) ?? .null
    case .toMany(let member, let isOrdered, _, _):
      var members: [Value] = []
      for _ in 0..<Int.random(in: 0..<(member == .plain("integer") ? 14 : 5), using: &random) {
        guard let value = self.member(member, world) else { continue }
        // Ordered collections refuse duplicate members.
        if !isOrdered || !members.contains(value) || Int.random(in: 0..<40, using: &random) == 0 {
          members.append(value)
        }
      }
      return .array(members)
    default: return nil
    }
  }

  mutating func member(_ sort: OracleSchema.Sort, _ world: OracleWorld) -> Value? {
    switch sort {
    // Enough of them for a long list.
    case .plain("integer"): .integer(Int64.random(in: 1...14, using: &random))
    case .plain(let type): plain(type)
    case .object(let destination): target(destination, world)
    case .list: nil
    }
  }

  private mutating func plain(_ type: String) -> Value {
    switch type {
    case "integer": .integer([1, 2, 3].randomElement(using: &random) ?? 0)
    case "number": .number([0, 0.5, 2.25, -0.25, 3].randomElement(using: &random) ?? 0)
    case "date": .string(OracleFold.dates.randomElement(using: &random)?.text ?? "")
    default: .string(["a", "b", "B", "\u{e9}", "ab"].randomElement(using: &random) ?? "")
    }
  }

  private mutating func target(_ destination: String, _ world: OracleWorld) -> Value? {
    let candidates = world.objects.keys.sorted().filter { schema.isKind(OracleWorld.entity($0), of: destination) }
    return candidates.randomElement(using: &random).map(Value.string)
  }

  mutating func body(_ object: String, _ world: OracleWorld, rarely: Bool = false) -> JSONObject {
    var body = JSONObject()
    for key in world.storedKeys(object).shuffled(using: &random) {
      guard Int.random(in: 0..<(rarely ? 5 : 2), using: &random) == 0 || !key.isOptional else { continue }
      body[key.name] = value(object, key.name, world)
    }
    return body
  }
}
