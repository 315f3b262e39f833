/// What was found out about an operation before the single writer has it: what depends on the schema and the operation
/// alone, and what a patch makes of its object as it stood then. The writer need not do it again.
enum Preparation: Sendable {
  /// Nothing: everything is for the writer.
  case none
  /// Each value is one that its attribute takes.
  case checked
  /// A value is none that its attribute takes.
  case refused(ModelError)
  /// What a JSON patch makes of its object.
  case patched(PreparedPatch)
}

/// Checks the values of an operation by the schema alone, before the single writer has it.
struct ValueCheck {
  let schema: Schema
  private var refusal: ModelError?
  private var isComplete = true

  init(schema: Schema) {
    self.schema = schema
  }

  /// What was found: that all is well, that a value is refused, or nothing, where something was met that only the
  /// writer can decide.
  var outcome: Preparation {
    guard isComplete else { return .none }
    return refusal.map(Preparation.refused) ?? .checked
  }

  /// The last key of a path; nil where there is none.
  func key(_ keyPath: String, from entity: Entity) -> Key? {
    if let index = entity.indexOfKey(keyPath) { return entity.keys[index] }
    guard let path = try? schema.resolve(keyPath, from: entity), path.operation == nil, path.unobservable == nil,
      let last = path.keys.last
    else { return nil }
    // Each key on the way leads to one object.
    var owner = entity
    for index in path.keys.dropLast() {
      guard case .toOne(let toOne) = owner.keys[index].kind, let next = schema.entity(named: toOne.destination) else {
        return nil
      }
      owner = next
    }
    return owner.keys[last]
  }

  /// Looks at the members of a body. Where it is merged into what is there, what becomes of JSON shows then.
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

  /// Looks at a value that is to be set. The problem names the object and the key path, as the request did.
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

  /// Looks at what becomes a member; `owner` is the object that has the collection, where it is known by now.
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
    // The writer takes JSON as it is: what has to be converted is left to it.
    if attribute.type == .json, value.isUnsettled { isComplete = false }
    do throws(Attribute.Refusal) {
      _ = try attribute.accepting(value)
    } catch {
      // The problem names the owner, which only the writer finds.
      guard let reference else { return isComplete = false }
      refusal = ModelError(.invalidValue, "\(subject) \(error.reason)", object: reference, keyPath: keyPath)
    }
  }
}
