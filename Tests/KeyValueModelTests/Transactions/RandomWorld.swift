import TestKit

@testable import KeyValueModel

/// A random schema with relationships of all kinds, and random operations on its objects, most of which can be applied.
struct RandomWorld {
  /// The maximum number of objects of an entity: enough for collections that are stored as trees.
  static let idCount = 14

  var random: SplitMix64
  let yaml: String
  let schema: Schema

  init(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    yaml = Self.yaml(&random)
    schema = try Schema(yaml: yaml)
    self.random = random
  }

  // MARK: The schema

  private static func yaml(_ random: inout SplitMix64) -> String {
    let count = Int.random(in: 2...4, using: &random)
    var keys = (0..<count).map { number in
      [
        "n\(number): {type: integer, indexed: true}", "s\(number): {type: string, notifies: changed, indexed: true}",
        "v\(number): {toMany: integer, ordered: \(Bool.random(using: &random))}",
      ]
    }
    for number in 0..<Int.random(in: 3...7, using: &random) {
      let (left, right) = (Int.random(in: 0..<count, using: &random), Int.random(in: 0..<count, using: &random))
      switch Int.random(in: 0..<6, using: &random) {
      case 0, 1: keys[left].append("r\(number): {\(side("E\(right)", nil, &random))}")
      case 2: keys[left].append("r\(number): {\(side("E\(left)", "r\(number)", &random))}")
      default:
        keys[left].append("r\(number): {\(side("E\(right)", "q\(number)", &random))}")
        keys[right].append("q\(number): {\(side("E\(left)", "r\(number)", &random))}")
      }
    }
    let entities = (0..<count).map { number in
      let parent = number > 0 && Int.random(in: 0..<3, using: &random) == 0 ? "extends: E\(number - 1), " : ""
      return "  E\(number): {\(parent)keys: {\(keys[number].joined(separator: ", "))}}"
    }
    return "entities:\n" + entities.joined(separator: "\n")
  }

  private static func side(_ destination: String, _ inverse: String?, _ random: inout SplitMix64) -> String {
    var words: [String]
    switch Int.random(in: 0..<7, using: &random) {
    case 0, 1: words = ["toOne: \(destination)"]
    case 2: words = ["toOne: \(destination)", inverse == nil ? "indexed: true" : "optional: false"]
    case 3, 4: words = ["toMany: \(destination)"]
    default: words = ["toMany: \(destination)", "ordered: true"]
    }
    if let inverse { words.append("inverse: \(inverse)") }
    let rule = ["nullify", "nullify", "nullify", "cascade", "deny"].randomElement(using: &random) ?? ""
    words.append("delete: \(rule)")
    let notifies = ["always", "always", "changed", "manual"].randomElement(using: &random) ?? ""
    words.append("notifies: \(notifies)")
    return words.joined(separator: ", ")
  }

  // MARK: Operations

  /// Every reference that an object may have.
  var references: [Reference] {
    schema.entities.flatMap { entity in (1...Self.idCount).compactMap { Reference(entity: entity.name, id: "\($0)") } }
  }

  mutating func operation(on state: ModelState) -> KeyValueModel.Operation {
    let entity = schema.entities.randomElement(using: &random) ?? schema.entities[0]
    let reference = object(of: entity, in: state)
    let key = entity.keys.randomElement(using: &random) ?? entity.keys[0]
    switch Int.random(in: 0..<24, using: &random) {
    case 0..<5: return .create(unused(of: entity, in: state), values(of: entity, in: state, share: 4))
    case 5: return .put(reference, values(of: entity, in: state, share: 2))
    case 6, 7: return .patch(reference, values(of: entity, in: state, share: 3))
    case 8: return .delete(reference)
    case 9..<13: return .set(reference, keyPath: key.name, value(for: key, in: state))
    case 13: return patch(reference, key, in: state)
    default: return collectionOperation(reference, entity, in: state)
    }
  }

  private mutating func collectionOperation(
    _ reference: Reference, _ entity: Entity, in state: ModelState
  ) -> KeyValueModel.Operation {
    let key = entity.keys.filter(\.isToMany).randomElement(using: &random) ?? entity.keys[0]
    var count = 0
    if let record = state.record(reference), let storage = key.storage, case .members(let list) = record.values[storage]
    {
      count = list.count
    }
    let members = members(of: key, in: state)
    let places = Array((0..<max(count, 1)).shuffled(using: &random).prefix(members.count))
    switch Int.random(in: 0..<7, using: &random) {
    case 0, 1: return .insert(reference, keyPath: key.name, members, at: nil)
    case 2: return .insert(reference, keyPath: key.name, Array(members.prefix(places.count)), at: places)
    case 3: return .removeIndexes(reference, keyPath: key.name, Array(places.prefix(2)))
    case 4:
      return .removeMembers(
        reference, keyPath: key.name, members.compactMap { if case .value(let value) = $0 { value } else { nil } })
    case 5: return .replace(reference, keyPath: key.name, at: places, Array(members.prefix(places.count)))
    default:
      let mutation = SetMutation.allCases.randomElement(using: &random) ?? .union
      return .mutateSet(reference, keyPath: key.name, mutation, members)
    }
  }

  private mutating func patch(_ reference: Reference, _ key: Key, in state: ModelState) -> KeyValueModel.Operation {
    let value = key.isToMany ? value(for: key, in: state).elements?.first ?? .null : value(for: key, in: state)
    let place = key.isToMany ? "/\(key.name)/0" : "/\(key.name)"
    let name = ["add", "replace", "remove"].randomElement(using: &random) ?? "add"
    let operations: Value = .array([.object(["op": .string(name), "path": .string(place), "value": value])])
    return (try? JSONPatch(operations)).map { .jsonPatch(reference, $0) } ?? .delete(reference)
  }

  /// Makes an operation that fails in any position, in some cases after half of its work.
  mutating func failure(on state: ModelState) -> KeyValueModel.Operation {
    let entity = schema.entities.randomElement(using: &random) ?? schema.entities[0]
    let reference = object(of: entity, in: state)
    var values = values(of: entity, in: state, share: 1)
    switch Int.random(in: 0..<4, using: &random) {
    case 0:
      values["nowhere"] = .null
      return .put(reference, values)
    case 1: return .didChange(reference, key: entity.keys[0].name)
    case 2:
      values[entity.keys[entity.keys.count - 1].name] = .bool(true)
      return .create(unused(of: entity, in: state), values)
    default:
      values[entity.keys[entity.keys.count - 1].name] = .bool(true)
      return .patch(reference, values)
    }
  }

  // MARK: Objects and values

  private mutating func object(of entity: Entity, in state: ModelState) -> Reference {
    let known = state.references(of: entity).filter { $0.entity == entity.name }
    return known.randomElement(using: &random) ?? unused(of: entity, in: state)
  }

  private mutating func unused(of entity: Entity, in state: ModelState) -> Reference {
    let free = (1...Self.idCount).compactMap { Reference(entity: entity.name, id: "\($0)") }
      .filter { state.record($0) == nil }
    return (free.isEmpty ? references : free).randomElement(using: &random) ?? references[0]
  }

  /// Makes values for about one key in `share`.
  private mutating func values(of entity: Entity, in state: ModelState, share: Int) -> JSONObject {
    var values = JSONObject()
    for key in entity.keys where !key.isOptional && !key.isToMany || Int.random(in: 0..<share, using: &random) == 0 {
      values[key.name] = value(for: key, in: state)
    }
    return values
  }

  private mutating func value(for key: Key, in state: ModelState) -> Value {
    switch key.kind {
    case .attribute(let attribute):
      let number = Int.random(in: 0...4, using: &random)
      if number == 4 { return .null }
      return attribute.type == .integer ? .integer(Int64(number)) : .string("text \(number)")
    case .toOne(let toOne):
      if key.isOptional, Int.random(in: 0..<6, using: &random) == 0 { return .null }
      return targets(toOne.destination, in: state).first.map { .string($0.text) } ?? .null
    case .toMany(let toMany):
      let count = Int.random(in: 0...12, using: &random)
      guard let destination = toMany.destination else {
        return .array((0..<20).shuffled(using: &random).prefix(count).map { .integer(Int64($0)) })
      }
      return .array(targets(destination, in: state).prefix(count).map { .string($0.text) })
    case .computed: return .null
    }
  }

  private mutating func targets(_ entity: String, in state: ModelState) -> [Reference] {
    guard let entity = schema.entity(named: entity) else { return [] }
    return state.references(of: entity).shuffled(using: &random)
  }

  /// Makes members, some of which may already be in the collection; in some cases one that is created in place.
  private mutating func members(of key: Key, in state: ModelState) -> [NewMember] {
    let count = Int.random(in: 0...4, using: &random)
    var members = (value(for: key, in: state).elements ?? []).prefix(count).map(NewMember.value)
    guard case .toMany(let toMany) = key.kind, let destination = toMany.destination,
      let entity = schema.entity(named: destination), Int.random(in: 0..<4, using: &random) == 0
    else { return members }
    let made = schema.family(of: entity).randomElement(using: &random) ?? entity
    let reference = unused(of: made, in: state)
    members.append(.object(reference, values(of: made, in: state, share: 3)))
    return members.shuffled(using: &random)
  }
}
