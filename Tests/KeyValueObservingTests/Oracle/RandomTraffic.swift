import KeyValueModel
import Seeding

/// Random operations on a few objects of an oracle's schema; most of them can succeed.
struct RandomTraffic {
  let schema: OracleSchema
  var random: SplitMix64

  private func names(_ entity: String) -> [String] { (1...3).map { "\(entity)/\($0)" } }

  mutating func object() -> String {
    names(["A", "A", "B", "C"].randomElement(using: &random) ?? "A").randomElement(using: &random) ?? "A/1"
  }

  /// The operations of one transaction, brackets mostly balanced.
  mutating func transaction(_ world: OracleWorld) -> [KeyValueModel.Operation] {
    var operations: [KeyValueModel.Operation] = []
    var open: [(Reference, String)] = []
    let count = Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 2...9, using: &random) : 1
    for _ in 0..<count {
      guard count > 1, Int.random(in: 0..<3, using: &random) == 0 else {
        operations.append(operation(world))
        continue
      }
      if !open.isEmpty, Bool.random(using: &random) {
        let (object, key) = open.remove(at: Int.random(in: open.indices, using: &random))
        operations.append(.didChange(object, key: key))
      } else if let object = Reference(existing(world)) {
        // Often around what is set next.
        let key = schema.keys(object.entity).randomElement(using: &random)?.name ?? "n00"
        operations.append(.willChange(object, key: key))
        open.append((object, key))
        if Bool.random(using: &random), let value = value(object.text, key, world) {
          operations.append(.set(object, keyPath: key, value))
        }
      }
    }
    for (object, key) in open.shuffled(using: &random) where Int.random(in: 0..<60, using: &random) > 0 {
      operations.append(.didChange(object, key: key))
    }
    return operations
  }

  private mutating func existing(_ world: OracleWorld) -> String {
    world.objects.keys.sorted().randomElement(using: &random) ?? object()
  }

  private mutating func operation(_ world: OracleWorld) -> KeyValueModel.Operation {
    let text = Int.random(in: 0..<6, using: &random) == 0 ? object() : existing(world)
    guard let reference = Reference(text) else { preconditionFailure("\(text) is no reference") }
    switch Int.random(in: 0..<20, using: &random) {
    case 0, 1: return .delete(reference)
    case 2: return .create(reference, body(text, world))
    case 3, 4, 5: return .put(reference, body(text, world))
    case 6, 7, 8: return .patch(reference, body(text, world))
    default:
      let path = schema.randomPath(reference.entity, upTo: 3, &random)
      var owner: String? = text
      for name in path.dropLast() { owner = owner.flatMap { world.target($0, name) } }
      guard let name = path.last, let value = value(owner ?? text, name, world) else {
        return .put(reference, body(text, world))
      }
      return .set(reference, keyPath: path.joined(separator: "."), value)
    }
  }

  /// A value that suits a stored key, nil for a computed one.
  private mutating func value(_ object: String, _ key: String, _ world: OracleWorld) -> Value? {
    switch world.key(object, key)?.kind {
    case .attribute: return [Value.null, .integer(1), .integer(2), .integer(3)].randomElement(using: &random)
    case .toOne(let destination, _, _):
      if Int.random(in: 0..<5, using: &random) == 0 { return .null }
      let candidates = world.objects.keys.sorted().filter { schema.isKind(OracleWorld.entity($0), of: destination) }
      return candidates.randomElement(using: &random).map(Value.string) ?? .null
    default: return nil
    }
  }

  private mutating func body(_ object: String, _ world: OracleWorld) -> JSONObject {
    var body = JSONObject()
    for key in world.storedKeys(object).shuffled(using: &random) where Bool.random(using: &random) || !key.isOptional {
      body[key.name] = value(object, key.name, world)
    }
    return body
  }
}
