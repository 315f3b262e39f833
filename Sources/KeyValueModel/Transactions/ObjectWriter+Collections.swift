/// Changing to-many keys: by index set, as sets, and as a whole.
extension ObjectWriter {
  /// A collection of an object, found by a key path.
  struct CollectionPlace {
    let owner: Reference
    let index: Int
    let key: Key
    let toMany: ToMany
    var list: MemberList
    /// The path as it was written, from the object that was named: for problems.
    let keyPath: String
    let root: Reference

    func error(_ code: ModelError.Code, _ detail: String) -> ModelError {
      ModelError(code, detail, object: root, keyPath: keyPath)
    }
  }

  /// Finds the collection that a key path names. The objects on the way must be there.
  func collection(_ reference: Reference, _ keyPath: String) throws(ModelError) -> CollectionPlace {
    let (owner, index, record) = try place(reference, keyPath)
    guard let record, case .toMany(let toMany) = record.entity.keys[index].kind,
      case .members(let list) = editor.state.value(of: record, owner, key: index)
    else {
      throw ModelError(.notACollection, "'\(keyPath)' is no collection", object: reference, keyPath: keyPath)
    }
    return CollectionPlace(
      owner: owner, index: index, key: record.entity.keys[index], toMany: toMany, list: list, keyPath: keyPath,
      root: reference)
  }

  // MARK: Operations

  mutating func insert(
    _ members: [NewMember], at indexes: [Int]?, into place: CollectionPlace
  ) throws(ModelError) {
    let values = try resolve(members, for: place)
    let place = refreshed(place, without: members)
    var list = place.list
    var inserted: [Value] = []
    if let indexes {
      for (index, value) in try pairs(indexes, values, place) {
        guard index <= list.count else { throw Self.outOfRange(index, list.count, place) }
        guard list.insert(value, at: index) else { throw Self.isMember(value, place) }
        inserted.append(value)
      }
    } else {
      for value in values {
        if list.insert(value) != nil {
          inserted.append(value)
        } else if place.toMany.isOrdered {
          throw Self.isMember(value, place)
        }
      }
    }
    try change(place, to: list, removed: [], inserted: inserted)
  }

  mutating func remove(at indexes: [Int], from place: CollectionPlace) throws(ModelError) {
    let ordered = try checked(indexes, in: place)
    var list = place.list
    let removed = ordered.map { place.list[$0] }
    for index in ordered.reversed() { _ = list.remove(at: index) }
    try change(place, to: list, removed: removed, inserted: [])
  }

  /// What is no member is none already; values need not even be possible ones.
  mutating func remove(_ members: [Value], from place: CollectionPlace) throws(ModelError) {
    var list = place.list
    var removed: [Value] = []
    for member in members {
      let value = try removable(member, place)
      if let index = list.index(of: value) { removed.append(list.remove(at: index)) }
    }
    try change(place, to: list, removed: removed, inserted: [])
  }

  mutating func replace(
    at indexes: [Int], with members: [NewMember], in place: CollectionPlace
  ) throws(ModelError) {
    let values = try resolve(members, for: place)
    let place = refreshed(place, without: members)
    _ = try checked(indexes, in: place)
    let pairs = try pairs(indexes, values, place)
    let removed = pairs.map { place.list[$0.index] }
    var list = place.list
    for pair in pairs.reversed() { _ = list.remove(at: pair.index) }
    for pair in pairs {
      guard list.insert(pair.value, at: pair.index) else { throw Self.isMember(pair.value, place) }
    }
    try change(
      place, to: list, removed: removed, inserted: pairs.map(\.value),
      as: .replacement(indexes: pairs.map(\.index)))
  }

  mutating func mutate(
    _ place: CollectionPlace, _ mutation: SetMutation, _ members: [NewMember]
  ) throws(ModelError) {
    try checkMutation(mutation, members, place)
    let values = MemberList(try resolve(members, for: place), isOrdered: false)
    let place = refreshed(place, without: members)
    if mutation == .intersect || mutation == .set {
      editor.budget.spend(place.list.count)
      try editor.budget.check()
    }
    let gone: [Value]
    let come: [Value]
    switch mutation {
    case .union: (gone, come) = ([], values.filter { !place.list.contains($0) })
    case .minus: (gone, come) = (values.compactMap { place.list.index(of: $0).map { place.list[$0] } }, [])
    case .intersect: (gone, come) = (place.list.filter { !values.contains($0) }, [])
    case .set: (gone, come) = (place.list.filter { !values.contains($0) }, values.filter { !place.list.contains($0) })
    }
    var list = place.list
    for member in gone { _ = list.remove(member) }
    for member in come { _ = list.insert(member) }
    try change(
      place, to: list, removed: gone, inserted: come, as: mutation == .set ? .replacement(indexes: nil) : .difference)
  }

  /// Sets a collection as a whole. `members` have been checked.
  mutating func assign(
    _ members: [Value], to owner: Reference, key index: Int, _ toMany: ToMany
  ) throws(ModelError) {
    guard case .members(let old) = editor.state.value(of: owner, key: index) else { return }
    editor.budget.spend(old.count + members.count)
    try editor.budget.check()
    let list = MemberList(members, isOrdered: toMany.isOrdered)
    let removed = old.filter { !list.contains($0) }
    let inserted = list.filter { !old.contains($0) }
    try replace(list, in: owner, key: index, toMany, removed: removed, inserted: inserted, as: .setting)
  }

  // MARK: Storing

  private mutating func change(
    _ place: CollectionPlace, to list: MemberList, removed: [Value], inserted: [Value],
    as kind: StepChanges.CollectionKind = .difference
  ) throws(ModelError) {
    // An operation that leaves the members as they were is none.
    guard !removed.isEmpty || !inserted.isEmpty else { return }
    try replace(
      list, in: place.owner, key: place.index, place.toMany, removed: removed, inserted: inserted, as: kind)
  }

  /// Stores the members, and changes the far sides where there is an inverse.
  private mutating func replace(
    _ list: MemberList, in owner: Reference, key index: Int, _ toMany: ToMany, removed: [Value], inserted: [Value],
    as kind: StepChanges.CollectionKind
  ) throws(ModelError) {
    editor.store(list, in: owner, key: index, removed: removed, inserted: inserted, as: kind)
    guard let inverse = toMany.inverseIndex else { return }
    let remaining = removed.isEmpty || inserted.isEmpty ? [] : Set(removed).intersection(inserted)
    for case .reference(let member) in removed where !remaining.contains(.reference(member)) {
      try editor.release(owner, from: member, key: inverse)
    }
    for case .reference(let member) in inserted where !remaining.contains(.reference(member)) {
      try editor.attach(owner, to: member, key: inverse, reverse: index)
    }
  }

  // MARK: Index sets

  /// The places with the members for them, ascending.
  private func pairs(
    _ indexes: [Int], _ values: [Value], _ place: CollectionPlace
  ) throws(ModelError) -> [(index: Int, value: Value)] {
    try checkOrdered(place)
    guard indexes.count == values.count else {
      throw place.error(.invalidValue, "there are \(indexes.count) places for \(values.count) members")
    }
    try checkOnce(indexes, place)
    return zip(indexes, values).sorted { $0.0 < $1.0 }.map { (index: $0.0, value: $0.1) }
  }

  /// Places of members that are there, ascending.
  private func checked(_ indexes: [Int], in place: CollectionPlace) throws(ModelError) -> [Int] {
    try checkOrdered(place)
    try checkOnce(indexes, place)
    for index in indexes where index >= place.list.count { throw Self.outOfRange(index, place.list.count - 1, place) }
    return indexes.sorted()
  }

  private func checkOrdered(_ place: CollectionPlace) throws(ModelError) {
    guard !place.toMany.isOrdered else { return }
    throw place.error(.indexOutOfRange, "'\(place.key.name)' is not ordered and has no places")
  }

  private func checkOnce(_ indexes: [Int], _ place: CollectionPlace) throws(ModelError) {
    var seen: Set<Int> = []
    for index in indexes {
      guard index >= 0 else { throw place.error(.indexOutOfRange, "\(index) is no place") }
      guard seen.insert(index).inserted else {
        throw place.error(.indexOutOfRange, "the place \(index) is named twice")
      }
    }
  }

  private static func outOfRange(_ index: Int, _ last: Int, _ place: CollectionPlace) -> ModelError {
    let range = last < 0 ? "there are none" : "they go from 0 to \(last)"
    return place.error(.indexOutOfRange, "\(index) is no place in '\(place.key.name)': \(range)")
  }

  private static func isMember(_ value: Value, _ place: CollectionPlace) -> ModelError {
    place.error(.invalidValue, "\(value.json) is a member of '\(place.key.name)' already; members are unique")
  }
}
