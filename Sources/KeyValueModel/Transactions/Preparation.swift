/// The result of preparing an operation before it reaches the single writer, which need not do that work again: it
/// depends only on the schema and the operation, or for a patch on its object as it was then.
enum Preparation: Sendable {
  /// No result: all checks are left to the writer.
  case none
  /// Every value is valid for its attribute.
  case checked
  /// A value is not valid for its attribute.
  case refused(ModelError)
  /// The result of a JSON Patch on its object.
  case patched(PreparedPatch)
}

/// Checks the values of an operation against the schema alone, before it reaches the single writer.
struct ValueCheck {
  let schema: Schema
  private var refusal: ModelError?
  private var isComplete = true

  init(schema: Schema) {
    self.schema = schema
  }

  /// The result: `checked`, the first refusal, or `none` if there was a value that only the writer can judge.
  var outcome: Preparation {
    guard isComplete else { return .none }
    return refusal.map(Preparation.refused) ?? .checked
  }

  /// Returns the last key of a path, or nil if it cannot be determined.
  func key(_ keyPath: String, from entity: Entity) -> Key? {
    if let index = entity.indexOfKey(keyPath) { return entity.keys[index] }
    guard let path = try? schema.resolve(keyPath, from: entity), path.operation == nil, path.unobservable == nil,
      let last = path.keys.last
    else { return nil }
    // Each key before the last leads to one object.
    var owner = entity
    for index in path.keys.dropLast() {
      guard case .toOne(let toOne) = owner.keys[index].kind, let next = schema.entity(named: toOne.destination) else {
        return nil
      }
      owner = next
    }
    return owner.keys[last]
  }

  /// Checks the members of a body. If it `isMerged` into existing values, the resulting JSON is left to the writer.
  mutating func look(at body: JSONObject, of entity: Entity, _ reference: Reference, isMerged: Bool = false) {
    for (name, value) in body.members {
      guard let index = entity.indexOfKey(name) else { continue }
      let key = entity.keys[index]
      if isMerged, let attribute = key.attribute, attribute.type == .json, !attribute.isUnconstrained {
        isComplete = false
      } else {
        look(at: value, for: key, of: reference, name)
      }
    }
  }

  /// Checks a value to be set. An error names the object and the key path as the request did.
  mutating func look(at value: Value, for key: Key, of reference: Reference, _ keyPath: String) {
    switch key.kind {
    case .attribute(let attribute):
      if !value.isNull { accept(value, by: attribute, "'\(key.name)'", reference, keyPath) }
    case .toMany(let toMany):
      guard case .value(let attribute) = toMany.member, let elements = value.elements else { return }
      for element in elements where !element.isNull {
        accept(element, by: attribute, "a member of '\(key.name)'", reference, keyPath)
      }
    case .toOne, .computed: break
    }
  }

  /// Checks the new members of a collection. `owner` is the object that has it, or nil if only the writer can find
  /// that.
  mutating func look(at members: [NewMember], of toMany: ToMany, _ key: Key, owner: Reference?) {
    for member in members {
      switch member {
      case .object(let reference, let body):
        guard let entity = schema.entity(of: reference) else { continue }
        look(at: body, of: entity, reference)
      case .value(let value):
        guard case .value(let attribute) = toMany.member, !value.isNull else { continue }
        accept(value, by: attribute, "a member of '\(key.name)'", owner, key.name)
      }
    }
  }

  private mutating func accept(
    _ value: Value, by attribute: Attribute, _ subject: String, _ reference: Reference?, _ keyPath: String
  ) {
    guard refusal == nil else { return }
    // The writer takes checked JSON as it is, so values that need conversion are left to it.
    if attribute.type == .json, value.isUnsettled { isComplete = false }
    do throws(Attribute.Refusal) {
      _ = try attribute.accepting(value)
    } catch {
      // The error must name the owner, which only the writer can find.
      guard let reference else { return isComplete = false }
      refusal = ModelError(.invalidValue, "\(subject) \(error.reason)", object: reference, keyPath: keyPath)
    }
  }
}
