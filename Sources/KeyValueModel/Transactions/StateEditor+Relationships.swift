/// Relationships and their inverses.
extension StateEditor {
  /// The object that a value names for a relationship, nil for null.
  func target(
    of value: Value, _ key: Key, destination: String, _ owner: Reference
  ) throws(ModelError) -> Reference? {
    func invalid(_ code: ModelError.Code, _ detail: String) -> ModelError {
      ModelError(code, detail, object: owner, keyPath: key.name)
    }

    let reference: Reference
    switch value {
    case .null: return nil
    case .reference(let given): reference = given
    case .string(let text):
      guard let given = Reference(text) else {
        throw invalid(.invalidValue, "'\(key.name)': '\(text)' is no reference")
      }
      reference = given
    default: throw invalid(.invalidValue, "'\(key.name)' wants a reference such as \"\(destination)/1\"")
    }
    guard let entity = state.schema.entity(of: reference) else {
      throw invalid(.wrongEntity, "'\(key.name)' wants a \(destination); there is no entity '\(reference.entity)'")
    }
    guard entity.isKind(of: destination) else {
      throw invalid(.wrongEntity, "'\(key.name)' wants a \(destination), and \(reference) is none")
    }
    guard state.record(reference) != nil, mayName(reference, key, owner) else {
      throw invalid(.invalidValue, "'\(key.name)': there is no object \(reference)")
    }
    return reference
  }

  /// Whether the writer may name an object that is there as a value: to a writer who may not read it, it is not there,
  /// unless the key had it before the transaction.
  private func mayName(_ reference: Reference, _ key: Key, _ owner: Reference) -> Bool {
    guard let viewer else { return true }
    let former = former
    // What the transaction itself has made may be named.
    guard let record = former.record(reference), !viewer.mayRead(reference, record, in: former) else { return true }
    guard let holder = former.record(owner), let index = holder.entity.indexOfKey(key.name) else { return false }
    switch former.value(of: holder, owner, key: index) {
    case .reference(let old): return old == reference
    case .members(let list): return list.contains(.reference(reference))
    default: return false
    }
  }

  /// False if a problem must not name an object and what a key of it holds, because the writer may not read that.
  private func mayTell(of holder: Reference, key: Int) -> Bool {
    guard let viewer else { return true }
    let former = former
    guard let record = former.record(holder) else { return true }
    return viewer.mayRead(holder, record, in: former) && !viewer.hiddenKeys(of: record.entity).contains(key)
  }

  /// Sets a to-one, and the other sides where it has an inverse: the old partner lets go, and so does the partner that
  /// the new one had before.
  mutating func connect(
    _ owner: Reference, key index: Int, _ toOne: ToOne, to new: Reference?
  ) throws(ModelError) {
    let old = state.value(of: owner, key: index)
    let value = new.map(Value.reference) ?? .null
    store(value, in: owner, key: index)
    guard let inverse = toOne.inverseIndex, old != value else { return }
    if case .reference(let partner) = old { try release(owner, from: partner, key: inverse) }
    if let new { try attach(owner, to: new, key: inverse, reverse: index) }
  }

  // MARK: The other side

  /// The far side `key` of `holder` lets `object` go, where it holds it.
  mutating func release(_ object: Reference, from holder: Reference, key index: Int) throws(ModelError) {
    guard let record = state.record(holder) else { return }
    switch state.value(of: record, holder, key: index) {
    case .reference(object):
      noteFarChange(of: holder, key: index)
      let key = record.entity.keys[index]
      guard key.isOptional else {
        guard mayTell(of: holder, key: index) else {
          throw ModelError(
            .nullNotAllowed, "the other side of a relationship must have a value and would lose \(object)",
            object: object)
        }
        throw ModelError(
          .nullNotAllowed, "'\(key.name)' of \(holder) must have a value and would lose \(object)", object: holder,
          keyPath: key.name)
      }
      store(.null, in: holder, key: index)
    case .members(var list):
      guard list.remove(.reference(object)) != nil else { return }
      noteFarChange(of: holder, key: index)
      store(list, in: holder, key: index, removed: [.reference(object)], inserted: [])
    default: break
    }
  }

  /// The far side `key` of `holder` takes `object`: a to-one in place of the object that it had, which forgets the
  /// holder under `reverse`; a collection at its end.
  mutating func attach(
    _ object: Reference, to holder: Reference, key index: Int, reverse: Int
  ) throws(ModelError) {
    guard let record = state.record(holder) else { return }
    switch state.value(of: record, holder, key: index) {
    case .members(var list):
      guard list.insert(.reference(object)) != nil else { return }
      noteFarChange(of: holder, key: index)
      store(list, in: holder, key: index, removed: [], inserted: [.reference(object)])
    case .reference(let rival):
      if rival == object { return }
      noteFarChange(of: holder, key: index)
      try release(holder, from: rival, key: reverse)
      store(.reference(object), in: holder, key: index)
    default:
      noteFarChange(of: holder, key: index)
      store(.reference(object), in: holder, key: index)
    }
  }
}
