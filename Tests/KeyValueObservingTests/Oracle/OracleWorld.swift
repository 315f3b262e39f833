import KeyValueModel
import OrderedCollections

/// Every object of the oracle: dictionaries, copied as a whole whenever somebody wants to remember them.
struct OracleWorld {
  /// A key that an operation set.
  struct Setting {
    let object: String
    let key: String
    let isSilent: Bool
  }

  struct Refused: Error {}

  let schema: OracleSchema
  var objects: [String: [String: Value]] = [:]
  /// What the operation under way has set, in order.
  var settings: [Setting] = []

  static func entity(_ object: String) -> String { String(object.prefix { $0 != "/" }) }

  func key(_ object: String, _ name: String) -> OracleSchema.Key? { schema.key(Self.entity(object), name) }

  func storedKeys(_ object: String) -> [OracleSchema.Key] { schema.keys(Self.entity(object)).filter(\.isStored) }

  func target(_ object: String, _ key: String) -> String? {
    guard case .reference(let reference) = read(object, key) else { return nil }
    return reference.text
  }

  func read(_ object: String, _ name: String) -> Value {
    guard let values = objects[object] else { return .null }
    if case .computed(let path) = key(object, name)?.kind { return read(object, path: path) }
    return values[name] ?? .null
  }

  func read(_ object: String, path: [String]) -> Value {
    guard let name = path.first else { return .null }
    guard path.count > 1 else { return read(object, name) }
    return target(object, name).map { read($0, path: Array(path.dropFirst())) } ?? .null
  }

  /// The (object, key) pairs that a path touches by itself.
  func links(_ object: String, _ path: [String]) -> [(object: String, key: String)] {
    guard let name = path.first else { return [] }
    let rest = path.count > 1 ? target(object, name).map { links($0, Array(path.dropFirst())) } ?? [] : []
    return [(object, name)] + rest
  }

  // MARK: Operations

  /// What `operation` does; its settings are in `settings` afterwards.
  mutating func apply(_ operation: KeyValueModel.Operation) throws {
    settings = []
    switch operation {
    case .create(let object, let body): try create(object.text, body)
    case .put(let object, let body): try put(object.text, body)
    case .patch(let object, let body):
      guard objects[object.text] != nil else { throw Refused() }
      for name in body.members.keys { try assign(object.text, name, body[name] ?? .null) }
    case .set(let object, let keyPath, let value):
      let path = keyPath.split(separator: ".").map(String.init)
      guard objects[object.text] != nil, let last = path.last else { throw Refused() }
      var owner = object.text
      for name in path.dropLast() {
        guard let next = target(owner, name) else { throw Refused() }
        owner = next
      }
      try assign(owner, last, value)
    case .delete(let object): try delete(object.text)
    case .willChange(let object, _), .didChange(let object, _):
      guard objects[object.text] != nil else { throw Refused() }
    case .require: break
    }
  }

  private func filling(_ key: OracleSchema.Key) -> Value {
    if case .attribute(let value?) = key.kind { return .integer(value) }
    return .null
  }

  private mutating func create(_ object: String, _ body: JSONObject) throws {
    guard objects[object] == nil else { throw Refused() }
    objects[object] = [:]
    for key in storedKeys(object) {
      if let value = body[key.name] {
        try assign(object, key.name, value)
      } else if read(object, key.name).isNull {
        try assign(object, key.name, filling(key))
      }
    }
  }

  private mutating func put(_ object: String, _ body: JSONObject) throws {
    guard let before = objects[object] else { return try create(object, body) }
    for key in storedKeys(object) {
      let old = before[key.name] ?? .null
      if let value = body[key.name] {
        try assign(object, key.name, value)
      } else if old != filling(key), read(object, key.name) == old {
        try assign(object, key.name, filling(key))
      }
    }
  }

  private mutating func store(_ object: String, _ key: OracleSchema.Key, _ value: Value) throws {
    guard !value.isNull || key.isOptional else { throw Refused() }
    let isEqual = read(object, key.name) == value
    objects[object]?[key.name] = value
    let isSilent = key.notifies == "manual" || (key.notifies == "changed" && isEqual)
    settings.append(Setting(object: object, key: key.name, isSilent: isSilent))
  }

  private mutating func assign(_ object: String, _ name: String, _ value: Value) throws {
    guard let key = key(object, name), key.isStored else { throw Refused() }
    guard case .toOne(let destination, let inverse, _) = key.kind, case .string(let new) = value else {
      let old = target(object, name)
      try store(object, key, value)
      if case .toOne(_, let inverse?, _) = key.kind, let old { try letGo(old, inverse, of: object) }
      return
    }
    guard objects[new] != nil, schema.isKind(Self.entity(new), of: destination), let reference = Reference(new),
      let owner = Reference(object)
    else { throw Refused() }
    let old = target(object, name)
    try store(object, key, .reference(reference))
    guard let inverse, old != new else { return }
    if let old { try letGo(old, inverse, of: object) }
    let rival = target(new, inverse)
    if rival == object { return }
    if let rival { try letGo(rival, name, of: new) }
    if let far = self.key(new, inverse) { try store(new, far, .reference(owner)) }
  }

  private mutating func letGo(_ object: String, _ name: String, of partner: String) throws {
    guard target(object, name) == partner, let key = key(object, name) else { return }
    try store(object, key, .null)
  }

  private mutating func delete(_ object: String) throws {
    guard objects[object] != nil else { throw Refused() }
    var doomed = [object]
    var next = 0
    while next < doomed.count {
      for (rule, target) in relationships(doomed[next]) where rule == "cascade" && !doomed.contains(target) {
        doomed.append(target)
      }
      next += 1
    }
    for object in doomed {
      guard relationships(object).allSatisfy({ $0.rule != "deny" || doomed.contains($0.target) }) else {
        throw Refused()
      }
    }
    for dead in doomed {
      for other in objects.keys.sorted() where !doomed.contains(other) {
        for key in storedKeys(other) where target(other, key.name) == dead { try store(other, key, .null) }
      }
    }
    for dead in doomed {
      for key in storedKeys(dead) {
        let isSilent = key.notifies == "manual" || (key.notifies == "changed" && read(dead, key.name).isNull)
        settings.append(Setting(object: dead, key: key.name, isSilent: isSilent))
      }
    }
    for dead in doomed { objects[dead] = nil }
  }

  private func relationships(_ object: String) -> [(rule: String, target: String)] {
    storedKeys(object).compactMap { key in
      guard case .toOne(_, _, let rule) = key.kind, let target = target(object, key.name) else { return nil }
      return (rule, target)
    }
  }
}
