/// The result of a JSON Patch (RFC 6902) on an object: the keys to set, with their values. It depends only on the
/// object as it was, and on the objects that its computed keys read.
struct ObjectPatch: Sendable {
  /// A key to set.
  struct Setting {
    let key: Int
    let value: Value
    /// The sizes of the new value and of the one that it replaces; nil if they were not counted.
    var size: (new: ValueSize, old: ValueSize)?
  }

  /// The keys to set, in the order in which the patch names them.
  private(set) var settings: [Setting]
  /// True if every value is known to have the form of its attribute.
  private(set) var isChecked = false
  /// The steps that applying the patch took.
  let steps: Int

  /// Applies a patch to an object as `GET` returns it, without the keys that are `hidden` from the client. Each key
  /// that the patch names is set to its resulting value.
  ///
  /// Throws `forbidden` if the patch replaces the whole document by one that has a hidden key, or another value of a
  /// key in `closed`.
  init(
    _ patch: JSONPatch, of reference: Reference, _ record: ObjectRecord, in state: borrowing ModelState,
    budget: TransactionBudget, without hidden: Set<Int> = [], closed: Set<Int> = []
  ) throws(ModelError) {
    let document = Self.document(of: record, reference, in: state, named: patch.namedMembers, without: hidden)
    let named = Value.object(document).textBytes
    var limits = JSONPatchLimits()
    // The parts that the patch does not name remain beside the document.
    let unnamed = max(0, record.textBytes - named)
    limits.documentBytes = max(budget.limits.objectBytes - unnamed, named)
    limits.addedBytes = budget.bytesLeft
    limits.steps = budget.stepsLeft
    var application = JSONPatchApplication(.object(document), limits: limits)
    do throws(JSONPatchError) {
      for operation in patch.operations { try application.apply(operation) }
    } catch {
      throw ModelError(error, reference)
    }
    guard case .object(let result) = application.document else {
      throw ModelError(
        .invalidValue, "the patch turns the object into \(application.document.kind)", object: reference)
    }
    let changes = Self.changes(by: patch, of: record.entity, document, result)
    for name in changes.members.keys {
      guard let key = record.entity.indexOfKey(name) else { continue }
      if hidden.contains(key) { throw Viewer.hiding(name, of: reference) }
      if closed.contains(key) { throw WriteInquiry.forbidden(key, of: record.entity, reference) }
    }
    settings = try record.entity.settings(changes, of: reference).map { index, value in
      // A removed key has no value; a removed collection has no members.
      let isEmptied = result[record.entity.keys[index].name] == nil && record.entity.keys[index].isToMany
      return Setting(key: index, value: isEmptied ? .array([]) : value)
    }
    steps = application.steps
  }

  /// Checks the values against the schema, and counts the sizes of those that are JSON.
  fileprivate mutating func check(
    by schema: Schema, _ reference: Reference, _ record: ObjectRecord
  ) throws(ModelError) {
    var check = ValueCheck(schema: schema)
    for index in settings.indices {
      let (value, key) = (settings[index].value, record.entity.keys[settings[index].key])
      check.look(at: value, for: key, of: reference, key.name)
      guard key.attribute?.type == .json, !value.isNull, let storage = key.storage else { continue }
      settings[index].size = (value.storedSize, record.values[storage].storedSize)
    }
    switch check.outcome {
    case .refused(let error): throw error
    case .checked: isChecked = true
    case .none, .patched: break
    }
  }

  /// Returns the object's JSON, or only its members in `named` unless that is nil.
  private static func document(
    of record: ObjectRecord, _ reference: Reference, in state: borrowing ModelState, named: Set<String>?,
    without hidden: Set<Int>
  ) -> JSONObject {
    var document: JSONObject = ["@ref": .string(reference.text)]
    // The revision also changes for hidden keys.
    if hidden.isEmpty { document["@revision"] = .integer(Int64(clamping: record.revision)) }
    document["@lifetime"] = record.lease?.shown
    for (index, key) in record.entity.keys.enumerated() where named?.contains(key.name) ?? true {
      if hidden.contains(index) { continue }
      let value = state.value(of: record, reference, key: index)
      // An attribute's value is already JSON, and may be large.
      document[key.name] = key.attribute == nil ? value.plain : value
    }
    return document
  }

  /// Returns the members that the patch names, or if it replaces the whole document, those that differ then. It may
  /// leave out what cannot be set, such as computed keys.
  private static func changes(
    by patch: JSONPatch, of entity: Entity, _ document: JSONObject, _ result: JSONObject
  ) -> JSONObject {
    var changes = JSONObject()
    guard patch.touchesDocument else {
      for name in patch.touchedMembers { changes[name] = result[name] ?? .null }
      return changes
    }
    for (name, value) in document.members where result[name] == nil && entity.stores(name) {
      if !value.isNull, value != .array([]) { changes[name] = .null }
    }
    for (name, value) in result.members where document[name] != value {
      // A whole number has no fraction in JSON, and is read back as an integer.
      if document[name]?.json == value.json { continue }
      changes[name] = value
    }
    return changes
  }
}

/// The result of a JSON Patch on an object at a revision. It is valid until the object is written.
struct PreparedPatch: Sendable {
  private let revision: Revision
  private let createdAt: Revision
  let result: Result<ObjectPatch, ModelError>

  /// Applies a patch to an object of a state. Returns nil if the object does not exist, or if the patch names anything
  /// that depends on other objects: the whole document, or a computed key.
  init?(
    _ patch: JSONPatch, of reference: Reference, in state: borrowing ModelState, _ limits: TransactionLimits
  ) {
    guard let record = state.record(reference), let names = patch.namedMembers else { return nil }
    let isOwn = names.allSatisfy { name in
      record.entity.indexOfKey(name).map { record.entity.keys[$0].storage != nil } ?? true
    }
    guard isOwn else { return nil }
    revision = record.revision
    createdAt = record.createdAt
    do throws(ModelError) {
      var patched = try ObjectPatch(patch, of: reference, record, in: state, budget: TransactionBudget(limits))
      try patched.check(by: state.schema, reference, record)
      result = .success(patched)
    } catch {
      result = .failure(error)
    }
  }

  /// Returns true if `record` is still the object that the patch was applied to.
  func holds(for record: ObjectRecord) -> Bool { record.revision == revision && record.createdAt == createdAt }
}

extension Value {
  /// The value as JSON has it: references are strings, collections are arrays.
  fileprivate var plain: Value {
    switch self {
    case .reference(let reference): .string(reference.text)
    case .members(let list): .array(list.map(\.plain))
    case .array(let elements): .array(elements.map(\.plain))
    default: self
    }
  }
}

extension ModelError {
  /// Creates the error for a patch that cannot be applied to an object.
  fileprivate init(_ error: JSONPatchError, _ reference: Reference) {
    let code: Code =
      switch error.kind {
      case .testFailed: .patchTestFailed
      case .tooManyBytes: .contentTooLarge
      case .tooManySteps: .tooManySteps
      case .malformed, .tooManyOperations, .missingLocation, .invalidIndex, .tooLarge: .invalidValue
      }
    let place = error.operationIndex.map { "operation \($0) of the patch: " } ?? ""
    self.init(code, place + error.message, object: reference)
  }
}

extension Entity {
  /// Returns true if a member of an object's JSON is a key that can be set, unlike computed keys and members such as
  /// `@ref`.
  fileprivate func stores(_ name: String) -> Bool {
    indexOfKey(name).map { keys[$0].storage != nil } ?? false
  }
}

/// JSON merge patch (RFC 7396 §2).
enum MergePatch {
  /// Implements `MergePatch(Target, Patch)` of the standard. Adds to `steps` the work that it takes: a target is
  /// copied, and removing a member takes longer the more there are.
  static func merging(_ patch: Value, into target: Value, steps: inout Int) -> Value {
    guard case .object(let patch) = patch else { return patch }
    var merged = JSONObject()
    if case .object(let object) = target { merged = object }
    steps += patch.members.count + TransactionBudget.steps(of: merged.members.count)
    for name in patch.members.keys {
      guard let value = patch[name], !value.isNull else {
        if merged[name] != nil { steps += TransactionBudget.steps(of: merged.members.count) }
        merged[name] = nil
        continue
      }
      merged[name] = merging(value, into: merged[name] ?? .null, steps: &steps)
    }
    return .object(merged)
  }
}
