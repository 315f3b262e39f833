/// JSON Patch (RFC 6902) on objects.
extension ObjectWriter {
  /// Works on the object as `GET` gives it; each key that the patch names is set to what becomes of it.
  mutating func apply(_ patch: JSONPatch, to reference: Reference) throws(ModelError) {
    let record = try editor.state.requireRecord(reference)
    let document = document(of: record, reference)
    let patched: Value
    do throws(JSONPatchError) {
      patched = try patch.applied(to: .object(document))
    } catch {
      throw ModelError(error, reference)
    }
    guard case .object(let result) = patched else {
      throw ModelError(.invalidValue, "the patch makes \(patched.kind) of the object", object: reference)
    }
    let changes = changes(by: patch, of: record.entity, document, result)
    for (index, value) in try orderedMembers(changes, of: record.entity, reference) {
      // A removed key has no value; a collection without value has no members.
      let isEmptied = result[record.entity.keys[index].name] == nil && record.entity.keys[index].isToMany
      try assign(isEmptied ? .array([]) : value, to: reference, key: index)
    }
  }

  private func document(of record: ObjectRecord, _ reference: Reference) -> JSONObject {
    var document: JSONObject = [
      "@ref": .string(reference.text), "@revision": .integer(Int64(clamping: record.revision)),
    ]
    for (index, key) in record.entity.keys.enumerated() {
      document[key.name] = editor.state.value(of: record, reference, key: index).plain
    }
    return document
  }

  /// What the patch names; where it replaces the document as a whole, what is different then. That it leaves out what
  /// is not to be set, as the computed keys are, says nothing.
  private func changes(
    by patch: JSONPatch, of entity: Entity, _ document: JSONObject, _ result: JSONObject
  ) -> JSONObject {
    var changes = JSONObject()
    guard patch.touchesDocument else {
      for name in patch.touchedMembers { changes[name] = result[name] ?? .null }
      return changes
    }
    for (name, value) in document.members where result[name] == nil && entity.stores(name) {
      if !value.isNull, value != .array([]) { changes[name] = .null }
    }
    for (name, value) in result.members where document[name] != value { changes[name] = value }
    return changes
  }
}

extension Value {
  /// As JSON has it: names of objects are strings, collections arrays.
  fileprivate var plain: Value {
    switch self {
    case .reference(let reference): .string(reference.text)
    case .members(let list): .array(list.map(\.plain))
    case .array(let elements): .array(elements.map(\.plain))
    default: self
    }
  }
}

extension ModelError {
  /// A patch that cannot be applied to an object.
  fileprivate init(_ error: JSONPatchError, _ reference: Reference) {
    let code: Code = error.kind == .testFailed ? .patchTestFailed : .invalidValue
    let place = error.operationIndex.map { "operation \($0) of the patch: " } ?? ""
    self.init(code, place + error.message, object: reference)
  }
}

extension Entity {
  /// Whether a member of an object's JSON is a key that can be set: neither a computed one nor `@ref` and its like.
  fileprivate func stores(_ name: String) -> Bool {
    indexOfKey(name).map { keys[$0].storage != nil } ?? false
  }
}
