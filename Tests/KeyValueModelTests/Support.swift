import KeyValueModel
import Testing

/// The reference that `text` names.
func ref(_ text: String) throws -> Reference {
  try #require(Reference(text), "\(text) is no reference")
}

/// The value of a JSON text.
func json(_ text: String) throws -> Value {
  try Value(json: text)
}

/// The JSON object of a text.
func body(_ text: String) throws -> JSONObject {
  guard case .object(let object) = try json(text) else { throw NotAnObject() }
  return object
}

struct NotAnObject: Error {}

/// A model with the shorthand that tests of transactions want.
struct Fixture {
  var model: Model

  init(_ yaml: String) throws {
    model = Model(schema: try Schema(yaml: yaml))
  }

  @discardableResult
  mutating func commit(_ operations: Operation..., preconditions: [Precondition] = []) throws -> Commit {
    try model.commit(Transaction(operations, preconditions: preconditions))
  }

  mutating func create(_ text: String, _ values: String = "{}") throws {
    try commit(.create(try ref(text), try body(values)))
  }

  mutating func put(_ text: String, _ values: String) throws {
    try commit(.put(try ref(text), try body(values)))
  }

  mutating func patch(_ text: String, _ values: String) throws {
    try commit(.patch(try ref(text), try body(values)))
  }

  mutating func set(_ text: String, _ keyPath: String, _ value: String) throws {
    try commit(.set(try ref(text), keyPath: keyPath, try json(value)))
  }

  mutating func delete(_ text: String) throws {
    try commit(.delete(try ref(text)))
  }

  /// The value for a key path as JSON.
  func value(_ text: String, _ keyPath: String) throws -> String {
    let reference = try ref(text)
    let path = try model.schema.resolve(keyPath, from: model.state.requireRecord(reference).entity)
    return model.state.value(of: reference, at: path).json
  }

  func exists(_ text: String) throws -> Bool {
    model.state.record(try ref(text)) != nil
  }

  /// The error that the operations meet; fails where they meet none.
  mutating func error(_ operations: [Operation], preconditions: [Precondition] = []) throws -> ModelError {
    let before = portrait
    var caught: ModelError?
    do throws(ModelError) {
      _ = try model.commit(Transaction(operations, preconditions: preconditions))
    } catch {
      caught = error
    }
    #expect(portrait == before, "a failed transaction left a trace")
    return try #require(caught, "nothing failed")
  }

  /// Everything that can be seen of the model, for comparisons.
  var portrait: [String] { portrayal(of: model) }
}
