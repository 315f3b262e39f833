/// A reader of one operation of a JSON patch.
struct JSONPatchReader {
  private let object: JSONObject
  private let index: Int

  /// A reader of the operation at `index`; throws `malformed` where it is no object.
  init(_ value: Value, index: Int) throws(JSONPatchError) {
    guard case .object(let object) = value else {
      throw JSONPatchError(kind: .malformed, operationIndex: index, message: "an operation must be an object")
    }
    self.object = object
    self.index = index
  }

  /// The operation; throws `malformed`.
  func operation() throws(JSONPatchError) -> JSONPatch.Operation {
    let name = try string("op")
    guard let kind = JSONPatch.Operation.Kind(rawValue: name) else { throw error("there is no operation '\(name)'") }
    let source = kind.hasSource ? try pointer("from") : nil
    let path = try pointer("path")
    guard let operation = JSONPatch.Operation(kind, from: source, path, kind.hasValue ? try value() : nil) else {
      throw error("a value cannot be moved into itself")
    }
    return operation
  }

  private func error(_ message: String) -> JSONPatchError {
    JSONPatchError(kind: .malformed, operationIndex: index, message: message)
  }

  private func string(_ name: String) throws(JSONPatchError) -> String {
    switch object[name] {
    case .string(let text): return text
    case .reference(let reference): return reference.text
    case nil: throw error("'\(name)' is missing")
    default: throw error("'\(name)' must be a string")
    }
  }

  private func pointer(_ name: String) throws(JSONPatchError) -> JSONPointer {
    let text = try string(name)
    guard let pointer = JSONPointer(text) else { throw error("'\(name)' is no JSON pointer: '\(text)'") }
    return pointer
  }

  private func value() throws(JSONPatchError) -> Value {
    guard let value = object["value"] else { throw error("'value' is missing") }
    return value
  }
}
