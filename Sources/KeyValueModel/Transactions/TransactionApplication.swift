internal import OrderedCollections

/// A transaction being applied: the state as it is so far, and how to get back.
///
/// Everything is written through `write`, which remembers what stood there before the transaction, so that `undo` leaves
/// no trace of a failed one.
struct TransactionApplication {
  private(set) var state: ModelState
  let revision: Revision
  private var before: OrderedDictionary<Reference, ObjectRecord?> = [:]
  private var steps: [Commit.Step] = []
  private var results: [Reference] = []
  /// The operations that opened the brackets that are open.
  private var openBrackets: [BracketKey: [Int]] = [:]

  // The operation under way.
  private var written: OrderedSet<Reference> = []
  var changes: [Commit.KeyChange] = []

  struct BracketKey: Hashable {
    let object: Reference
    let key: Int
  }

  init(state: consuming ModelState, revision: Revision) {
    self.state = state
    self.revision = revision
  }

  /// Applies the operations in order. A failure names the operation where there is more than one.
  mutating func apply(_ operations: [Operation]) throws(ModelError) {
    for (index, operation) in operations.enumerated() {
      do throws(ModelError) {
        try apply(operation)
      } catch {
        var located = error
        if operations.count > 1 { located.operation = index }
        throw located
      }
    }
    if let (bracket, opened) = openBrackets.min(by: { $0.value.last ?? 0 < $1.value.last ?? 0 }) {
      let name = state.record(bracket.object)?.entity.keys[bracket.key].name
      var error = ModelError(
        .unbalancedBracket, "a willChange has no didChange", object: bracket.object, keyPath: name)
      if operations.count > 1 { error.operation = opened.last }
      throw error
    }
  }

  /// Puts everything back.
  mutating func undo() {
    for (reference, record) in before { state.replace(reference, with: record) }
  }

  /// What the transaction did.
  func commit(writer: String?) -> Commit {
    Commit(
      revision: revision, writer: writer, steps: steps, before: before.map { ($0.key, $0.value) }, results: results)
  }

  private mutating func apply(_ operation: Operation) throws(ModelError) {
    written.removeAll(keepingCapacity: true)
    changes.removeAll(keepingCapacity: true)
    switch operation {
    case .create(let reference, let values): try create(reference, values)
    case .put(let reference, let values): try put(reference, values)
    case .set(let reference, let keyPath, let value): try set(reference, keyPath, value)
    case .patch(let reference, let patch): try apply(patch, to: reference)
    case .delete(let reference): try delete(reference)
    case .willChange(let reference, let key): return try openBracket(reference, key)
    case .didChange(let reference, let key): return try closeBracket(reference, key)
    case .require(let reference, let since): return try require(reference, since)
    }
    let writes = written.map { ($0, state.record($0)) }
    steps.append(Commit.Step(kind: .change(changes), writes: writes))
    results.append(operation.reference)
  }

  // MARK: Writing

  /// The one way to change the state.
  mutating func write(_ reference: Reference, _ record: ObjectRecord?) {
    let old = state.replace(reference, with: record)
    if before.index(forKey: reference) == nil { before.updateValue(old, forKey: reference) }
    written.append(reference)
  }

  /// Sets one stored key to a value that has been checked, and notes it for the observers unless the key keeps silent.
  mutating func store(_ value: Value, in reference: Reference, key index: Int) {
    guard var record = state.record(reference), let storage = record.entity.keys[index].storage else { return }
    let isEqual = record.values[storage] == value
    record.values[storage] = value
    record.revision = revision
    let notifying = record.entity.keys[index].notifying
    write(reference, record)
    note(reference, index, isSilent: notifying == .manual || (notifying == .changed && isEqual))
  }

  mutating func note(_ reference: Reference, _ key: Int, isSilent: Bool) {
    changes.append(Commit.KeyChange(object: reference, key: key, isSilent: isSilent))
  }

  // MARK: Brackets and requirements

  private mutating func openBracket(_ reference: Reference, _ name: String) throws(ModelError) {
    let key = try bracketKey(reference, name)
    // Each operation has one result, so there are as many as operations before this one.
    openBrackets[key, default: []].append(results.count)
    steps.append(Commit.Step(kind: .willChange(reference, key: key.key), writes: []))
    results.append(reference)
  }

  private mutating func closeBracket(_ reference: Reference, _ name: String) throws(ModelError) {
    let key = try bracketKey(reference, name)
    guard let opened = openBrackets[key] else {
      throw ModelError(.unbalancedBracket, "a didChange has no willChange", object: reference, keyPath: name)
    }
    openBrackets[key] = opened.count > 1 ? opened.dropLast() : nil
    steps.append(Commit.Step(kind: .didChange(reference, key: key.key), writes: []))
    results.append(reference)
  }

  private func bracketKey(_ reference: Reference, _ name: String) throws(ModelError) -> BracketKey {
    let record = try state.requireRecord(reference)
    guard let key = record.entity.indexOfKey(name) else {
      throw ModelError(
        .undefinedKey, "\(record.entity.name) has no key '\(name)'", object: reference, keyPath: name)
    }
    return BracketKey(object: reference, key: key)
  }

  /// Looks at the object as it stood before the transaction: what the transaction itself does is no conflict.
  private mutating func require(_ reference: Reference, _ since: Revision) throws(ModelError) {
    let former = FormerState(before: before, state: state)
    guard former.record(reference) != nil, former.revision(of: reference) <= since, since < revision else {
      throw ModelError(.staleRevision, "\(reference) has changed since revision \(since)", object: reference)
    }
    results.append(reference)
  }

  /// The state as it was before the transaction.
  private struct FormerState: ObjectReader {
    let before: OrderedDictionary<Reference, ObjectRecord?>
    let state: ModelState

    func record(_ reference: Reference) -> ObjectRecord? {
      if let former = before[reference] { return former }
      return state.record(reference)
    }
  }
}

extension Operation {
  /// The object that the operation is about.
  public var reference: Reference {
    switch self {
    case .create(let reference, _), .put(let reference, _), .set(let reference, _, _), .patch(let reference, _),
      .delete(let reference), .willChange(let reference, _), .didChange(let reference, _), .require(let reference, _):
      reference
    }
  }
}
