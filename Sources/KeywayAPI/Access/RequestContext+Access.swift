import KeyValueModel
import ModelStore

// Without rules in the schema, those who may not do everything may read and write nothing.
extension RequestContext {
  /// The filter of a query of which the requester may read no row.
  static let noFilter = "false"

  /// The state as the requester may read it.
  func snapshot(of store: Store) -> Snapshot {
    let snapshot = store.snapshot
    guard !requester.mayDoEverything else { return snapshot }
    return snapshot.withoutObjects(of: store.schema)
  }

  /// The bindings of cells as the requester may bind them. Throws `unknown-object` for an object that may not be read.
  func readable(_ bindings: [String: Value]) throws(Problem) -> [String: Value] {
    guard !requester.mayDoEverything else { return bindings }
    var readable: [String: Value] = [:]
    for (name, binding) in bindings { readable[name] = try self.readable(binding) }
    return readable
  }

  /// The same of one binding.
  func readable(_ binding: Value) throws(Problem) -> Value {
    guard !requester.mayDoEverything, case .object(var body) = binding else { return binding }
    if case .string(let name)? = body["object"] {
      throw Problem(.unknownObject, "there is no \(name)")
    }
    if body["entity"] != nil || body["filter"] != nil { body["filter"] = .string(Self.noFilter) }
    return .object(body)
  }
}
