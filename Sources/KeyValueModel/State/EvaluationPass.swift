import CEL
import Support

/// One evaluation with all nested ones: the reader, and the last revision that was read.
///
/// Sendable without a lock, because the values of expressions require it: a pass never leaves the call that makes it,
/// and nothing of it remains in the result of that call.
final class EvaluationPass: @unchecked Sendable {
  private let reader: any ObjectReader
  /// True if the reader hides objects or keys from a viewer.
  private let isGuarded: Bool
  private(set) var latest = LatestRevision.ofComputedKey()
  /// The number of converted elements and members of values that have not been charged to a budget yet.
  private var unpaidConversions = 0

  init(reader: any ObjectReader) {
    self.reader = reader
    isGuarded = reader.unguarded != nil
  }

  /// Returns the object with this reference, and notes that it was read.
  private func record(_ reference: Reference) -> ObjectRecord? {
    let record = reader.record(reference)
    if let record { latest.note(record) }
    return record
  }

  /// Returns the object at the end of a path of to-one relationships; without keys, the one at which it starts.
  func object(behind keys: [Int], from reference: Reference) -> Reference? {
    guard !keys.isEmpty else { return reference }
    guard case .reference(let object) = reader.value(of: reference, at: keys[...], latest: &latest) else { return nil }
    return object
  }

  /// Returns the value of a key in the form of an expression.
  func value(
    ofKey key: Int, of record: ObjectRecord, _ reference: Reference, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    let definition = record.entity.keys[key]
    // An expression that names a hidden key is refused; if only evaluation finds the object's entity, the value is
    // null.
    if isGuarded, reader.hides(key, of: record.entity) { return .null }
    if isGuarded, case .computed = definition.kind, let unguarded = reader.unguarded {
      let pass = EvaluationPass(reader: unguarded)
      defer { latest.note(pass.latest.revision) }
      return guarded(try pass.value(ofKey: key, of: record, reference, budget: &budget))
    }
    if case .computed(let computed) = definition.kind, case .expression(let expression)? = computed.formula {
      // Within an expression a failed key is null, as for all other readers.
      guard case .success(let value) = result(of: expression, reference, record, budget: &budget) else {
        if budget.remainingCost == 0 { throw .costLimitExceeded }
        noteFailure(of: expression)
        return .null
      }
      guard let declared = computed.conversion else { return value }
      guard let converted = Value(value, as: declared) else {
        noteFailure(of: expression)
        return .null
      }
      return expressionValue(of: converted, definition.valueType)
    }
    try budget.spend()
    let value = reader.value(of: record, reference, key: key, latest: &latest)
    let converted = expressionValue(of: value, definition.valueType)
    if unpaidConversions > 0 {
      let count = unpaidConversions
      unpaidConversions = 0
      try budget.spend(count)
    }
    return converted
  }

  /// Returns the value of an expression for an object: evaluated, or remembered if it reads more than that object.
  func result(
    of expression: KeyExpression, _ reference: Reference, _ record: ObjectRecord, budget: inout EvaluationBudget
  ) -> Result<ExpressionValue, EvaluationError> {
    guard let work = reader.work, expression.readsOtherObjects else {
      return expression.evaluate(reference, record, self, budget: &budget)
    }
    let evaluation = ReadingWork.Evaluation(expression: ObjectIdentifier(expression), object: reference)
    if let known = work.known(evaluation) {
      work.spend()
      latest.note(known.latest)
      return known.result
    }
    let outer = latest
    latest = latest.anew
    latest.note(record)
    let result = expression.evaluate(reference, record, self, budget: &budget)
    work.remember(result, latest: latest.revision, for: evaluation)
    latest.note(outer.revision)
    return result
  }

  /// Counts a failure of an expression, unless it may be due to the work having been stopped.
  func noteFailure(of expression: KeyExpression) {
    if reader.work?.stop == nil { expression.noteFailure() }
  }

  /// Returns the result of a fold. The cost of each member is counted unless the reader keeps the fold.
  func value(
    of fold: CollectionFold, _ owner: Reference, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> FoldedValue {
    if let kept = reader.folded(fold, of: owner) { return kept }
    guard let work = reader.work else { return try workedOut(fold, owner, budget: &budget) }
    let folding = ReadingWork.Folding(
      fold: fold, owner: owner, isGuarded: reader.unguarded != nil, isForComputedKey: true)
    if let known = work.known(folding) {
      work.spend()
      latest.note(known.latest)
      return known.result
    }
    let outer = latest
    latest = latest.anew
    defer { latest.note(outer.revision) }
    let value = try workedOut(fold, owner, budget: &budget)
    work.remember(value, latest: latest.revision, for: folding)
    return value
  }

  private func workedOut(
    _ fold: CollectionFold, _ owner: Reference, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> FoldedValue {
    guard case .expression(let member) = fold.element, let record = record(owner),
      case .members(let list) = reader.value(of: record, owner, key: fold.key, latest: &latest)
    else { return .value(.null) }
    var running = RunningFold(fold)
    for value in list {
      try budget.spend()
      let contribution = member.contribution(of: value, self, budget: &budget)
      if budget.remainingCost == 0 { throw .costLimitExceeded }
      running.insert(contribution)
    }
    return running.value
  }

  /// Returns a value that was computed without restriction, with the objects in it as the reader has them.
  private func guarded(_ value: ExpressionValue) -> ExpressionValue {
    switch value {
    case .object(let object):
      return Reference(object.identity).map { expressionValue(of: .reference($0), nil) } ?? .null
    case .list, .lazyList:
      guard let list = value.asList else { return .null }
      return .list((0..<list.count).map { index in (try? list.element(at: index)).map(guarded) ?? .null })
    case .map(let map):
      let entries = zip(map.keys, map.values.map(guarded)).map { ($0, $1) }
      return (try? ExpressionMap(entries)).map(ExpressionValue.map) ?? .null
    default: return value
    }
  }

  // MARK: Values

  /// Returns a member of a collection in the form of an expression.
  func expressionValue(ofMember member: Value) -> ExpressionValue {
    expressionValue(of: member, nil)
  }

  /// Returns a value of the model in the form of an expression: dates as timestamps, references as the objects they
  /// name.
  fileprivate func expressionValue(of value: Value, _ type: ValueType?) -> ExpressionValue {
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .integer(let value): return type == .attribute(.number) ? .double(Double(value)) : .int(value)
    case .number(let value), .rounded(let value): return .double(value)
    case .string(let text):
      if type == .attribute(.date), let instant = RFC3339Instant(text),
        let timestamp = ExpressionTimestamp(seconds: instant.seconds, nanoseconds: instant.nanoseconds)
      {
        return .timestamp(timestamp)
      }
      return .string(text)
    case .reference(let reference):
      if let record = record(reference) { return .object(ModelObject(reference, record, self)) }
      // A reference is a value of the object that holds it, even if the object that it names may not be read.
      return reader.unguarded?.record(reference) == nil ? .null : .object(UnreadableObject(reference))
    case .array(let elements):
      unpaidConversions += elements.count
      return .list(elements.map { expressionValue(of: $0, type?.element) })
    case .members(let list): return .lazyList(MemberSequence(list, type?.element, self))
    case .object(let object):
      unpaidConversions += object.members.count
      let entries = object.members.map { (ExpressionValue.string($0.key), expressionValue(of: $0.value, nil)) }
      return (try? ExpressionMap(entries)).map(ExpressionValue.map) ?? .null
    }
  }
}

/// An object in the form of an expression.
final class ModelObject: ExpressionObject {
  let reference: Reference
  private let record: ObjectRecord
  private let pass: EvaluationPass

  init(_ reference: Reference, _ record: ObjectRecord, _ pass: EvaluationPass) {
    self.reference = reference
    self.record = record
    self.pass = pass
  }

  var typeName: String { record.entity.name }

  var identity: String { reference.text }

  func field(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue {
    var key = index
    if key < 0 {
      guard let found = record.entity.indexOfKey(name) else {
        throw EvaluationError(.noSuchKey, "\(record.entity.name) has no key '\(name)'")
      }
      key = found
    }
    return try pass.value(ofKey: key, of: record, reference, budget: &budget)
  }
}

/// An object that may not be read, in the form of an expression: its reference is known, and all its keys are null.
private final class UnreadableObject: ExpressionObject {
  private let reference: Reference

  init(_ reference: Reference) { self.reference = reference }

  var typeName: String { reference.entity }

  var identity: String { reference.text }

  func field(
    named name: String, index: Int, budget: inout EvaluationBudget
  ) throws(EvaluationError) -> ExpressionValue { .null }
}

/// The members of a collection in the form of an expression, converted one at a time.
private final class MemberSequence: ExpressionSequence {
  private let list: MemberList
  private let type: ValueType?
  private let pass: EvaluationPass

  init(_ list: MemberList, _ type: ValueType?, _ pass: EvaluationPass) {
    self.list = list
    self.type = type
    self.pass = pass
  }

  var count: Int { list.count }

  func element(at index: Int) throws(EvaluationError) -> ExpressionValue {
    pass.expressionValue(of: list[index], type)
  }

  func contains(identity: String) -> Bool? {
    switch type {
    case .object: Reference(identity).map { list.contains(.reference($0)) } ?? false
    // An object equals the text of its reference, and so can be found among texts.
    case .attribute(.string), .attribute(.json): list.contains(.string(identity))
    default: nil
    }
  }
}

extension Value {
  /// Creates the JSON form of an expression's value (CEL language definition, JSON Data Conversion): timestamps by RFC
  /// 3339, objects by their references.
  ///
  /// Nil if there is none, as for bytes, an infinite double or a map with keys that are not strings, if the result is
  /// too large, or if it does not have the declared type.
  init?(_ value: ExpressionValue, as declared: AttributeType?) {
    if let declared, declared != .json {
      switch value {
      case .list, .lazyList, .map: return nil
      default: break
      }
    }
    // A list may contain one list many times without additional memory; its JSON repeats the list.
    var room = Self.expressionValueNodes
    guard let plain = Self.plain(value, room: &room) else { return nil }
    guard let declared, !plain.isNull else {
      self = plain
      return
    }
    guard let converted = try? Attribute(type: declared).accepting(plain) else { return nil }
    self = converted
  }

  /// The maximum number of values in the value of an expression, where eight bytes of text count as one: the same as
  /// the maximum number of steps of an evaluation.
  private static let expressionValueNodes = 1_000_000

  private static func plain(_ value: ExpressionValue, room: inout Int) -> Value? {
    room -= 1
    guard room >= 0 else { return nil }
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .integer(value)
    case .uint(let value): return Int64(exactly: value).map(Value.integer) ?? .number(Double(value))
    case .double(let value): return value.isFinite ? .number(value) : nil
    case .string(let text):
      room -= text.utf8.count / 8
      return .string(text)
    case .bytes: return nil
    case .timestamp(let timestamp): return .string(timestamp.description)
    case .duration(let duration): return .string(duration.description)
    case .type(let name): return .string(name)
    case .object(let object): return Reference(object.identity).map(Value.reference)
    case .list, .lazyList: return list(value, room: &room)
    case .map(let map): return object(map, room: &room)
    }
  }

  private static func list(_ value: ExpressionValue, room: inout Int) -> Value? {
    guard let list = value.asList else { return nil }
    var elements: [Value] = []
    guard list.count <= room else { return nil }
    elements.reserveCapacity(list.count)
    for index in 0..<list.count {
      guard let element = try? list.element(at: index), let plain = plain(element, room: &room) else { return nil }
      elements.append(plain)
    }
    return .array(elements)
  }

  private static func object(_ map: ExpressionMap, room: inout Int) -> Value? {
    var object = JSONObject()
    for (key, member) in zip(map.keys, map.values) {
      guard case .string(let name) = key, let plain = plain(member, room: &room) else { return nil }
      object[name] = plain
    }
    return .object(object)
  }
}

extension ExpressionValue {
  /// Creates the form that a JSON value has in expressions, for a key of type `json`.
  package init(json value: Value) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .bool(value)
    case .integer(let value): self = .int(value)
    case .number(let value), .rounded(let value): self = .double(value)
    case .string(let text): self = .string(text)
    case .reference(let reference): self = .string(reference.text)
    case .array(let elements): self = .list(elements.map { ExpressionValue(json: $0) })
    case .members(let list): self = .list(list.map { ExpressionValue(json: $0) })
    case .object(let object):
      let entries = object.members.map { (ExpressionValue.string($0.key), ExpressionValue(json: $0.value)) }
      self = (try? ExpressionMap(entries)).map(ExpressionValue.map) ?? .null
    }
  }
}
