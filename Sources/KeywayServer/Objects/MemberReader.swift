import KeyValueModel

/// Reads what a body or an operation names as members of a to-many: one or an array of them; references, values, or
/// objects that are made in place.
struct MemberReader {
  /// The entity of the members; nil where they are values, and where there is no such to-many, which the model says.
  private let destination: String?
  private let makeID: () -> String

  /// A reader for the to-many that a key path of an object names.
  init(_ keyPath: String, of reference: Reference, in schema: Schema, makeID: @escaping () -> String) {
    if case .object(let name)? = schema.memberType(of: keyPath, from: reference) {
      destination = name
    } else {
      destination = nil
    }
    self.makeID = makeID
  }

  /// The members; objects get an id from the server unless their `@ref` names one.
  func newMembers(_ value: Value) throws(ModelError) -> [NewMember] {
    var members: [NewMember] = []
    for value in Self.values(value) { members.append(try newMember(value)) }
    return members
  }

  /// One value, or those of an array.
  static func values(_ value: Value) -> [Value] { value.elements ?? [value] }

  private func newMember(_ value: Value) throws(ModelError) -> NewMember {
    guard case .object(let body) = value, let destination else { return .value(value) }
    guard let name = body["@ref"] else {
      guard let reference = Reference(entity: destination, id: makeID()) else {
        throw ModelError(.unknownEntity, "there is no entity '\(destination)'")
      }
      return .object(reference, body)
    }
    guard case .string(let text) = name, let reference = Reference(text) else {
      throw ModelError(.invalidValue, "@ref is \(name.json), which is no reference such as \"\(destination)/1\"")
    }
    return .object(reference, body)
  }
}

extension Schema {
  /// What the members of the collection are that a key path leads to; nil where it leads to none, or nowhere.
  func memberType(of keyPath: String, from reference: Reference) -> ValueType? {
    guard let entity = entity(of: reference) else { return nil }
    return (try? resolve(keyPath, from: entity))?.type.element
  }
}
