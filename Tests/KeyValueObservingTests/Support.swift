import KeyValueModel
import KeyValueObserving
import Testing

/// Returns the reference that `text` names.
func ref(_ text: String) throws -> Reference {
  try #require(Reference(text), "\(text) is no reference")
}

/// Parses an operation from a line: `set A/1 x 5`, `put A/1 {…}`, `create`, `patch`, `delete A/1`, `will A/1 x`, `did
/// A/1 x`; for collections `insert A/1 list [2,3] @0,2`, where the indexes may be missing, `remove A/1 list [2]`,
/// `remove A/1 list @0`, `replace A/1 list [2] @0`, and `union`, `minus`, `intersect` or `assign A/1 list [2]`. A
/// member that is an object with `@ref` is created in place.
func operation(_ line: String) throws -> KeyValueModel.Operation {
  let parts = line.split(separator: " ", maxSplits: 3).map(String.init)
  let object = try ref(parts[1])
  func body() throws -> JSONObject {
    let text = parts.count > 2 ? parts[2...].joined(separator: " ") : "{}"
    guard case .object(let object) = try Value(json: text) else { throw UnknownOperation() }
    return object
  }
  switch parts[0] {
  case "set": return .set(object, keyPath: parts[2], try Value(json: parts[3]))
  case "create": return .create(object, try body())
  case "put": return .put(object, try body())
  case "patch": return .patch(object, try body())
  case "delete": return .delete(object)
  case "will": return .willChange(object, key: parts[2])
  case "did": return .didChange(object, key: parts[2])
  default: return try collectionOperation(parts[0], object, keyPath: parts[2], parts[3])
  }
}

private func collectionOperation(
  _ word: String, _ object: Reference, keyPath: String, _ rest: String
) throws -> KeyValueModel.Operation {
  let places = rest.lastIndex(of: "@").flatMap { mark in
    let numbers = rest[rest.index(after: mark)...].split(separator: ",").map { Int($0) }
    return numbers.contains(nil) ? nil : numbers.compactMap(\.self)
  }
  let text = places == nil ? rest : String(rest[..<(rest.lastIndex(of: "@") ?? rest.endIndex)])
  let values = text.isEmpty ? [] : try Value(json: text).elements ?? []
  switch (word, places) {
  case ("insert", _): return .insert(object, keyPath: keyPath, try values.map(newMember), at: places)
  case ("remove", let places?): return .removeIndexes(object, keyPath: keyPath, places)
  case ("remove", nil): return .removeMembers(object, keyPath: keyPath, values)
  case ("replace", let places?): return .replace(object, keyPath: keyPath, at: places, try values.map(newMember))
  default:
    guard let mutation = SetMutation(rawValue: word == "assign" ? "set" : word) else { throw UnknownOperation() }
    return .mutateSet(object, keyPath: keyPath, mutation, try values.map(newMember))
  }
}

private func newMember(_ value: Value) throws -> NewMember {
  guard case .object(let body) = value, case .string(let name)? = body["@ref"] else { return .value(value) }
  return .object(try ref(name), body)
}

struct UnknownOperation: Error {}

/// Returns a change as a line: `A/1.x old=1 new=2`, with `insertion at 0,2`, `prior` and its other properties.
func line(_ change: Change) -> String {
  var text = "\(change.observation.object).\(change.observation.keyPath.text)"
  if let cell = change.cell { text = "[\(cell)] " + text }
  if change.kind != .setting { text += " \(change.kind)" }
  if let indexes = change.indexes { text += " at \(indexes.map(String.init).joined(separator: ","))" }
  if change.isPrior { text += " prior" }
  if let old = change.old { text += " old=\(old.json)" }
  if let new = change.new { text += " new=\(new.json)" }
  if let context = change.observation.context { text += " context=\(context)" }
  if let coalesced = change.coalesced { text += " coalesced=\(coalesced)" }
  return text
}

/// Returns the changes and lost objects of an event as lines.
func lines(_ event: ObserverEvent) -> [String] {
  event.changes.map(line) + event.gone.map { ($0.cell.map { "[\($0)] " } ?? "") + "gone \($0.object)" }
}

/// A model with observers, and shorthands for tests.
struct Fixture {
  var model: Model
  var index = ObserverIndex()
  var commits: [Commit] = []

  init(_ yaml: String, _ lines: String...) throws {
    model = Model(schema: try Schema(yaml: yaml))
    for line in lines { _ = try apply([line]) }
  }

  /// Commits the operations together. Returns the events by observer.
  mutating func apply(_ lines: [String], changesPerObserver: Int = .max) throws -> [UInt64: ObserverEvent] {
    let commit = try model.commit(Transaction(try lines.map(operation), writer: "w"))
    commits.append(commit)
    var events: [UInt64: ObserverEvent] = [:]
    index.notify(CollectionOfOne(commit), of: model.state, changesPerObserver: changesPerObserver) { event in
      #expect(events.updateValue(event, forKey: event.observer.rawValue) == nil, "one commit is told at once")
      #expect(event.revision == commit.revision && event.writer == "w")
    }
    let broken = index.brokenInvariants(in: model.state)
    #expect(broken.isEmpty, "\(broken)")
    return events
  }

  /// Commits the operations together. Returns the event of observer 1 as lines.
  mutating func told(_ operations: String...) throws -> [String] {
    try apply(operations)[1].map(lines) ?? []
  }

  func observation(
    _ object: String, _ path: String, _ options: ObservingOptions = [.old, .new], context: String? = nil
  ) throws -> Observation {
    let reference = try ref(object)
    let entity = try model.state.requireRecord(reference).entity
    let keyPath = try model.schema.resolve(path, from: entity)
    return Observation(object: reference, keyPath: keyPath, options: options, context: context)
  }

  /// Observes targets such as `A/1.x`, all with the same options, as one registration.
  mutating func observe(
    _ targets: String..., options: ObservingOptions = [.old, .new], observer: UInt64 = 1, cell: String? = nil
  ) throws {
    let observations = try targets.map { target in
      let parts = target.split(separator: ".", maxSplits: 1).map(String.init)
      return try observation(parts[0], parts[1], options)
    }
    index.add(observations, of: ObserverID(observer), cell: cell, in: model.state)
  }
}
