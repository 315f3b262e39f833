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
  /// How many seconds the object is to last, of what makes or patches it; nil says nothing of it.
  var lifetime: Int64?

  /// Whether it is the first of those that a line becomes: the object is there after it.
  var isRow: Bool {
    if case .set = kind { return false }
    return true
  }

  /// As the server takes it.
  var json: Value {
    var members: JSONObject = ["object": .reference(object)]
    switch kind {
    case .create(let value): (members["op"], members["value"]) = (.string("create"), .object(value))
    case .patch(let value): (members["op"], members["value"]) = (.string("patch"), .object(value))
    case .set(let key, let value):
      (members["op"], members["keyPath"], members["value"]) = (.string("set"), .string(key), value)
    }
    members["lifetime"] = lifetime.map(Value.integer)
    return .object(members)
  }
}
