import KeyValueModel

/// One operation of a transaction, and the line that it comes from.
struct PlannedOperation: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case create(JSONObject)
    case patch(JSONObject)
    case set(key: String, Value)
  }

  var line: Int
  var object: Reference
  var kind: Kind

  /// Whether it is the first of those that a line becomes: the object is there after it.
  var isRow: Bool {
    if case .set = kind { return false }
    return true
  }

  /// As the server takes it.
  var json: Value {
    switch kind {
    case .create(let value):
      .object(["op": .string("create"), "object": .reference(object), "value": .object(value)])
    case .patch(let value):
      .object(["op": .string("patch"), "object": .reference(object), "value": .object(value)])
    case .set(let key, let value):
      .object(["op": .string("set"), "object": .reference(object), "keyPath": .string(key), "value": value])
    }
  }
}
