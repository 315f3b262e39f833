extension Entity {
  /// The keys that the members of a body set, in its order, with their values. `@ref` must be the right one; it and
  /// `@revision` and `@lifetime` are ignored. A name that no key has is `invalid-value`: what the request names is
  /// there, and what it says of it is wrong.
  func settings(_ body: JSONObject, of reference: Reference) throws(ModelError) -> [(Int, Value)] {
    var values: [(Int, Value)] = []
    for name in body.members.keys {
      let value = body[name] ?? .null
      if name == "@revision" || name == "@lifetime" { continue }
      if name == "@ref" {
        guard value == .string(reference.text) else {
          throw ModelError(.invalidValue, "@ref is \(value.json), not \(reference)", object: reference, keyPath: name)
        }
        continue
      }
      guard let index = indexOfKey(name) else {
        throw ModelError(.invalidValue, undefined(name), object: reference, keyPath: name)
      }
      guard keys[index].storage != nil else {
        throw ModelError(.readOnlyKey, "'\(name)' is computed", object: reference, keyPath: name)
      }
      values.append((index, value))
    }
    return values
  }
}
