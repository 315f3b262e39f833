import KeyValueModel

extension OracleWorld {
  private func collection(_ place: (String, String)) throws -> OracleSchema.Key {
    guard let key = key(place.0, place.1), key.isToMany else { throw Refused() }
    return key
  }

  // MARK: Operations

  mutating func insert(_ members: [NewMember], at indexes: [Int]?, _ place: (String, String)) throws {
    let key = try collection(place)
    guard indexes == nil || key.isOrdered else { throw Refused() }
    guard indexes == nil || indexes?.count == members.count else { throw Refused() }
    let (values, old) = try make(members, key, place)
    var new = old
    if let indexes {
      guard Set(indexes).count == indexes.count else { throw Refused() }
      for (index, value) in zip(indexes, values).sorted(by: { $0.0 < $1.0 }) {
        guard index >= 0, index <= new.count, !new.contains(value) else { throw Refused() }
        new.insert(value, at: index)
      }
    } else {
      for value in values {
        if !new.contains(value) { new.append(value) } else if key.isOrdered { throw Refused() }
      }
    }
    try change(place, key, from: old, to: new, .difference)
  }

  mutating func remove(at indexes: [Int], _ place: (String, String)) throws {
    let key = try collection(place)
    let old = list(place.0, place.1)
    guard key.isOrdered, Set(indexes).count == indexes.count, indexes.allSatisfy(old.indices.contains) else {
      throw Refused()
    }
    let new = old.indices.filter { !indexes.contains($0) }.map { old[$0] }
    try change(place, key, from: old, to: new, .difference)
  }

  mutating func remove(_ members: [Value], _ place: (String, String)) throws {
    let key = try collection(place)
    let old = list(place.0, place.1)
    let gone = members.map { member -> Value in
      guard key.relationship != nil, case .string(let text) = member, let reference = Reference(text) else {
        return member
      }
      return .reference(reference)
    }
    try change(
      place, key, from: old, to: old.filter { !gone.contains($0) }, .difference,
      removed: gone.filter(old.contains))
  }

  mutating func replace(at indexes: [Int], _ members: [NewMember], _ place: (String, String)) throws {
    let key = try collection(place)
    guard key.isOrdered, Set(indexes).count == indexes.count, indexes.count == members.count else { throw Refused() }
    let (values, old) = try make(members, key, place)
    guard indexes.allSatisfy(old.indices.contains) else { throw Refused() }
    var new = old
    for (index, value) in zip(indexes, values) { new[index] = value }
    guard new.indices.allSatisfy({ !new[..<$0].contains(new[$0]) }) else { throw Refused() }
    let sorted = indexes.sorted()
    let change = MemberChange(
      kind: "replacement", indexes: sorted, old: sorted.map { old[$0] }, new: sorted.map { new[$0] })
    if indexes.isEmpty { return }
    try self.change(place, key, from: old, to: new, .replacement(change), removed: change.old, inserted: change.new)
  }

  mutating func mutate(_ mutation: SetMutation, _ members: [NewMember], _ place: (String, String)) throws {
    let key = try collection(place)
    guard !key.isOrdered else { throw Refused() }
    if mutation == .minus || mutation == .intersect {
      for case .object in members { throw Refused() }
    }
    let (given, old) = try make(members, key, place)
    let values = OracleFold.sorted(unique(given))
    let new: [Value]
    switch mutation {
    case .union: new = old + values.filter { !old.contains($0) }
    case .minus: new = old.filter { !values.contains($0) }
    case .intersect: new = old.filter(values.contains)
    case .set: new = old.filter(values.contains) + values.filter { !old.contains($0) }
    }
    var kind = Moves.Kind.difference
    if mutation == .set {
      let gone = old.filter { !new.contains($0) }
      let come = OracleFold.sorted(new.filter { !old.contains($0) })
      kind = .replacement(MemberChange(kind: "replacement", indexes: nil, old: gone, new: come))
    }
    try change(place, key, from: old, to: new, kind)
  }

  mutating func assignMembers(_ object: String, _ key: OracleSchema.Key, _ value: Value) throws {
    guard let elements = value.elements else { throw Refused() }
    let members = try elements.map { try member($0, key) }
    guard !key.isOrdered || unique(members).count == members.count else { throw Refused() }
    let old = list(object, key.name)
    let new = unique(members)
    try connect(
      object, key, to: new, .whole, removed: old.filter { !new.contains($0) },
      inserted: (key.isOrdered ? new : OracleFold.sorted(new)).filter { !old.contains($0) })
  }

  // MARK: Storing

  private func unique(_ values: [Value]) -> [Value] {
    values.reduce(into: []) { found, value in if !found.contains(value) { found.append(value) } }
  }

  /// Changes the members. If they stay as they were, does nothing.
  private mutating func change(
    _ place: (String, String), _ key: OracleSchema.Key, from old: [Value], to new: [Value], _ kind: Moves.Kind,
    removed: [Value]? = nil, inserted: [Value]? = nil
  ) throws {
    let gone = removed ?? old.filter { !new.contains($0) }
    let come = inserted ?? new.filter { !old.contains($0) }
    guard !gone.isEmpty || !come.isEmpty else { return }
    // The inverses are set in the order in which the operation names the members.
    try connect(place.0, key, to: new, kind, removed: unique(gone), inserted: come)
  }

  private mutating func connect(
    _ object: String, _ key: OracleSchema.Key, to new: [Value], _ kind: Moves.Kind, removed: [Value], inserted: [Value]
  ) throws {
    store(object, key, members: new, kind)
    guard let inverse = key.relationship?.inverse else { return }
    for case .reference(let member) in removed where !inserted.contains(.reference(member)) {
      try release(object, from: member.text, inverse)
    }
    for case .reference(let member) in inserted where !removed.contains(.reference(member)) {
      try attach(object, to: member.text, inverse, reverse: key.name)
    }
  }

  // MARK: Members

  private func member(_ value: Value, _ key: OracleSchema.Key) throws -> Value {
    guard !value.isNull else { throw Refused() }
    guard let destination = key.relationship?.destination else { return value }
    return .reference(try reference(value, to: destination))
  }

  /// Returns the members as values, after creating the new ones, and the former members that still exist.
  private mutating func make(
    _ members: [NewMember], _ key: OracleSchema.Key, _ place: (String, String)
  ) throws -> (values: [Value], old: [Value]) {
    var values: [Value] = []
    var new: [Value] = []
    for element in members {
      switch element {
      case .value(let value): values.append(try member(value, key))
      case .object(let reference, let body):
        guard let relationship = key.relationship,
          schema.isKind(Self.entity(reference.text), of: relationship.destination)
        else { throw Refused() }
        try create(reference.text, body, heldBy: relationship.inverse)
        values.append(.reference(reference))
        new.append(.reference(reference))
      }
    }
    return (values, list(place.0, place.1).filter { !new.contains($0) })
  }
}
