import KeyValueModel

/// Operations as tests write them: places are `Entity/id.keyPath`, values JSON.
extension KeyValueModel.Operation {
  static func create(_ text: String, _ values: String = "{}") throws -> Self {
    .create(try ref(text), try body(values))
  }

  static func delete(_ text: String) throws -> Self {
    .delete(try ref(text))
  }

  static func set(_ place: String, to value: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .set(reference, keyPath: keyPath, try json(value))
  }

  static func insert(_ members: String, into place: String, at indexes: [Int]? = nil) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .insert(reference, keyPath: keyPath, try newMembers(members), at: indexes)
  }

  static func remove(_ indexes: [Int], from place: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .removeIndexes(reference, keyPath: keyPath, indexes)
  }

  static func remove(_ members: String, from place: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .removeMembers(reference, keyPath: keyPath, try json(members).elements ?? [])
  }

  static func replace(_ indexes: [Int], of place: String, with members: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .replace(reference, keyPath: keyPath, at: indexes, try newMembers(members))
  }

  static func mutate(_ place: String, _ mutation: SetMutation, _ members: String) throws -> Self {
    let (reference, keyPath) = try parts(of: place)
    return .mutateSet(reference, keyPath: keyPath, mutation, try newMembers(members))
  }

  static func jsonPatch(_ text: String, _ patch: String) throws -> Self {
    .jsonPatch(try ref(text), try JSONPatch(json(patch)))
  }

  private static func parts(of place: String) throws -> (Reference, String) {
    let parts = place.split(separator: ".", maxSplits: 1)
    return (try ref(String(parts[0])), String(parts[1]))
  }

  /// The members of a JSON array; objects with an `@ref` are made in place.
  private static func newMembers(_ text: String) throws -> [NewMember] {
    try (json(text).elements ?? []).map { element in
      guard case .object(let values) = element, case .string(let name)? = values["@ref"] else { return .value(element) }
      return .object(try ref(name), values)
    }
  }
}

extension Fixture {
  /// What a commit did to keys, a line each: `List/1.items insertion [0, 2] + Item/1 Item/2`, with `silent` at the end
  /// where observers are not told; brackets as `willChange` and `didChange`.
  func changes(_ commit: Commit) throws -> [String] {
    commit.steps.flatMap { step in
      switch step.kind {
      case .willChange(let object, let key): ["\(name(object, key)) willChange"]
      case .didChange(let object, let key): ["\(name(object, key)) didChange"]
      case .change(let changes): changes.map(line)
      }
    }
  }

  private func line(_ change: Commit.KeyChange) -> String {
    var words = [name(change.object, change.key), change.collection?.kind.rawValue ?? "setting"]
    if let collection = change.collection {
      if let indexes = collection.indexes { words.append("\(indexes)") }
      if !collection.removed.isEmpty { words += ["-"] + collection.removed.map(Self.word) }
      if !collection.inserted.isEmpty { words += ["+"] + collection.inserted.map(Self.word) }
    }
    if change.isSilent { words.append("silent") }
    return words.joined(separator: " ")
  }

  private func name(_ object: Reference, _ key: Int) -> String {
    "\(object).\(model.schema.entity(named: object.entity)?.keys[key].name ?? "?")"
  }

  private static func word(_ value: Value) -> String {
    if case .reference(let reference) = value { return reference.text }
    return value.json
  }
}
