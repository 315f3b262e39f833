/// What becomes a member of a collection, and what a collection is after members were made in place.
extension ObjectWriter {
  /// The members as values: objects to be made in place are made, without what the inverse will give them.
  mutating func resolve(_ members: [NewMember], for place: CollectionPlace) throws(ModelError) -> [Value] {
    var values: [Value] = []
    for member in members {
      switch member {
      case .value(let value): values.append(try self.member(value, of: place.key, place.toMany, place.owner))
      case .object(let reference, let body):
        guard let destination = place.toMany.destination else {
          throw place.error(.invalidValue, "'\(place.key.name)' holds values, not objects")
        }
        guard editor.state.schema.entity(of: reference)?.isKind(of: destination) == true else {
          throw place.error(.wrongEntity, "'\(place.key.name)' wants a \(destination), and \(reference) is none")
        }
        try create(reference, body, heldBy: place.toMany.inverseIndex)
        values.append(.reference(reference))
      }
    }
    return values
  }

  /// A checked member: the reference of an object that is there, or a value in the form of its type.
  func member(_ value: Value, of key: Key, _ toMany: ToMany, _ owner: Reference) throws(ModelError) -> Value {
    guard !value.isNull else {
      throw ModelError(.nullNotAllowed, "'\(key.name)' cannot hold null", object: owner, keyPath: key.name)
    }
    switch toMany.member {
    case .object(let destination):
      return try editor.target(of: value, key, destination: destination, owner).map(Value.reference) ?? .null
    case .value(let attribute):
      do throws(Attribute.Refusal) {
        let member = try accept(value, by: attribute)
        // Members are unique as they are written, or the collection could not be sent back.
        return attribute.type == .json ? member.asWritten : member
      } catch {
        throw ModelError(.invalidValue, "a member of '\(key.name)' \(error.reason)", object: owner, keyPath: key.name)
      }
    }
  }

  func removable(_ value: Value, _ place: CollectionPlace) throws(ModelError) -> Value {
    guard place.toMany.destination != nil else {
      return try member(value, of: place.key, place.toMany, place.owner)
    }
    switch value {
    case .reference: return value
    case .string(let text):
      if let reference = Reference(text) { return .reference(reference) }
      throw place.error(.invalidValue, "'\(text)' is no reference")
    default: throw place.error(.invalidValue, "'\(place.key.name)' has references as members, not \(value.kind)")
    }
  }

  func checkMutation(
    _ mutation: SetMutation, _ members: [NewMember], _ place: CollectionPlace
  ) throws(ModelError) {
    guard !place.toMany.isOrdered else {
      throw place.error(.notACollection, "'\(place.key.name)' is ordered and takes no set operations")
    }
    guard mutation == .minus || mutation == .intersect else { return }
    for case .object(let reference, _) in members {
      throw place.error(.invalidValue, "\(reference) cannot be made by '\(mutation.rawValue)', which adds no members")
    }
  }

  /// The collection as it stands after members were made in place: their bodies may have taken others away. Those of
  /// them that have put themselves in are left out: where they go is for the operation to say.
  func refreshed(_ place: CollectionPlace, without members: [NewMember]) -> CollectionPlace {
    guard case .members(var list) = editor.state.value(of: place.owner, key: place.index) else { return place }
    for case .object(let reference, _) in members { list.remove(.reference(reference)) }
    var place = place
    place.list = list
    return place
  }
}
