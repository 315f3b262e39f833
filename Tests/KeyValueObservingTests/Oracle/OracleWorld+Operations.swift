import KeyValueModel
import OrderedCollections

extension OracleWorld {
  /// Applies `operation`, and leaves its settings in `settings`.
  mutating func apply(_ operation: KeyValueModel.Operation) throws {
    (settings, made) = ([], [])
    switch operation {
    case .create(let object, let body): try create(object.text, body)
    case .put(let object, let body): try put(object.text, body)
    case .patch(let object, let body):
      guard objects[object.text] != nil else { throw Refused() }
      for name in body.members.keys { try assign(object.text, name, body[name] ?? .null) }
    case .set(let object, let keyPath, let value):
      let (owner, name) = try place(object, keyPath)
      try assign(owner, name, value)
    case .delete(let object): try delete(object.text)
    case .willChange(let object, _), .didChange(let object, _):
      guard objects[object.text] != nil else { throw Refused() }
    case .insert(let object, let keyPath, let members, let indexes):
      try insert(members, at: indexes, try place(object, keyPath))
    case .removeIndexes(let object, let keyPath, let indexes): try remove(at: indexes, try place(object, keyPath))
    case .removeMembers(let object, let keyPath, let members): try remove(members, try place(object, keyPath))
    case .replace(let object, let keyPath, let indexes, let members):
      try replace(at: indexes, members, try place(object, keyPath))
    case .mutateSet(let object, let keyPath, let mutation, let members):
      try mutate(mutation, members, try place(object, keyPath))
    case .require, .lifetime: break
    case .jsonPatch: throw Refused()
    }
    finishSettings()
  }

  private func place(_ object: Reference, _ keyPath: String) throws -> (String, String) {
    let path = keyPath.split(separator: ".").map(String.init)
    guard objects[object.text] != nil, let last = path.last else { throw Refused() }
    var owner = object.text
    for name in path.dropLast() {
      guard let next = target(owner, name) else { throw Refused() }
      owner = next
    }
    return (owner, last)
  }

  // MARK: Objects

  private func filling(_ key: OracleSchema.Key) -> Value {
    if key.isToMany { return .array([]) }
    if case .attribute(_, let value?) = key.kind { return value }
    return .null
  }

  private func isNothing(_ value: Value) -> Bool { value.isNull || value == .array([]) }

  mutating func create(_ object: String, _ body: JSONObject, heldBy held: String? = nil) throws {
    guard objects[object] == nil else { throw Refused() }
    made.insert(object)
    objects[object] = [:]
    for key in storedKeys(object) where key.isToMany { objects[object]?[key.name] = .array([]) }
    for key in storedKeys(object) {
      if let value = body[key.name] {
        try assign(object, key.name, value)
      } else if key.name != held, isNothing(read(object, key.name)) {
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
      } else if let inverse = inverse(key, of: object), names(body[inverse], object) {
        // The body sets the other side, by which the key leads to the object itself.
        let alone = key.isToMany ? Value.array([.string(object)]) : .string(object)
        if read(object, key.name).json != alone.json { try assign(object, key.name, alone) }
      } else if old != filling(key), read(object, key.name) == old {
        try assign(object, key.name, filling(key))
      }
    }
  }

  /// Returns the key on the other side of a relationship if an object can be on both sides.
  private func inverse(_ key: OracleSchema.Key, of object: String) -> String? {
    switch key.kind {
    case .toOne(let destination, let inverse, _), .toMany(.object(let destination), _, let inverse, _):
      schema.isKind(Self.entity(object), of: destination) ? inverse : nil
    case .attribute, .toMany, .computed: nil
    }
  }

  private func names(_ value: Value?, _ object: String) -> Bool {
    value.map { ($0.elements ?? [$0]).contains(.string(object)) } ?? false
  }

  mutating func assign(_ object: String, _ name: String, _ value: Value) throws {
    guard let key = key(object, name), key.isStored else { throw Refused() }
    switch key.kind {
    case .toMany: try assignMembers(object, key, value)
    case .toOne(let destination, let inverse, _): try assign(object, key, value, destination, inverse)
    default: try store(object, key, value)
    }
  }

  private mutating func assign(
    _ object: String, _ key: OracleSchema.Key, _ value: Value, _ destination: String, _ inverse: String?
  ) throws {
    let old = target(object, key.name)
    let new = value.isNull ? nil : try reference(value, to: destination)
    try store(object, key, new.map(Value.reference) ?? .null)
    guard let inverse, old != new?.text else { return }
    if let old { try release(object, from: old, inverse) }
    if let new { try attach(object, to: new.text, inverse, reverse: key.name) }
  }

  func reference(_ value: Value, to destination: String) throws -> Reference {
    guard case .string(let text) = value, let reference = Reference(text), objects[text] != nil,
      schema.isKind(Self.entity(text), of: destination)
    else { throw Refused() }
    return reference
  }

  // MARK: The other side

  mutating func release(_ object: String, from holder: String, _ name: String) throws {
    guard let key = key(holder, name), let reference = Reference(object) else { return }
    if key.isToMany {
      let members = list(holder, name)
      guard members.contains(.reference(reference)) else { return }
      store(holder, key, members: members.filter { $0 != .reference(reference) }, .difference)
    } else if target(holder, name) == object {
      try store(holder, key, .null)
    }
  }

  mutating func attach(_ object: String, to holder: String, _ name: String, reverse: String) throws {
    guard let key = key(holder, name), let reference = Reference(object) else { return }
    if key.isToMany {
      let members = list(holder, name)
      guard !members.contains(.reference(reference)) else { return }
      return store(holder, key, members: members + [.reference(reference)], .difference)
    }
    let rival = target(holder, name)
    if rival == object { return }
    if let rival { try release(holder, from: rival, reverse) }
    try store(holder, key, .reference(reference))
  }

  // MARK: Deletion

  private func related(_ object: String) -> [(key: OracleSchema.Key, targets: [String])] {
    storedKeys(object).compactMap { key in
      guard key.relationship != nil else { return nil }
      let value = objects[object]?[key.name] ?? .null
      let targets = (value.elements ?? [value]).compactMap { value -> String? in
        if case .reference(let reference) = value { reference.text } else { nil }
      }
      return (key, targets)
    }
  }

  private mutating func delete(_ object: String) throws {
    guard objects[object] != nil else { throw Refused() }
    var doomed = [object]
    var next = 0
    while next < doomed.count {
      for (key, targets) in related(doomed[next]) where key.relationship?.rule == "cascade" {
        for target in targets where !doomed.contains(target) { doomed.append(target) }
      }
      next += 1
    }
    for dead in doomed {
      for (key, targets) in related(dead) where key.relationship?.rule == "deny" {
        guard targets.allSatisfy(doomed.contains) else { throw Refused() }
      }
    }
    for dead in doomed { try forget(dead, besides: doomed) }
    for dead in doomed {
      for key in storedKeys(dead) {
        let isSilent = key.notifies == "manual" || (key.notifies == "changed" && read(dead, key.name).isNull)
        settings.append(Setting(object: dead, key: key.name, isSilent: isSilent))
      }
    }
    for dead in doomed { objects[dead] = nil }
  }

  /// Removes an object from the relationships of all others, in the order of references and keys.
  private mutating func forget(_ dead: String, besides doomed: [String]) throws {
    for other in objects.keys.sorted() where !doomed.contains(other) {
      for (key, targets) in related(other) where targets.contains(dead) { try release(dead, from: other, key.name) }
    }
  }
}
