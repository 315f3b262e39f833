import HTTPServer
import KeyValueModel
import KeyValueObserving
import OrderedCollections
import Store

/// The object or live query that a client binds a cell to, and how the cell shows it.
struct CellBinding: Hashable, Sendable {
  /// The object; nil for a cell that shows a live query, or waits to be used again.
  var object: Reference?
  /// The live query; nil for a cell that shows an object, or waits to be used again.
  var query: Query.Words?
  /// The key paths as registered; nil for the object's display keys.
  var keyPaths: [String]?
  /// The options, which determine what its changes carry.
  var options: ObservingOptions = [.new, .initial]
  /// The text of the client that comes back with every change.
  var context: EchoedText?
  /// True if the cell is on screen.
  var isVisible = true
  /// The viewer whose read rules apply to the stream, or nil if none do.
  var viewer: Viewer?

  /// Reads a body of `PUT …/cells/{c}`.
  init(_ body: Value, for viewer: Viewer?) throws(Problem) {
    self.viewer = viewer
    try apply(body)
  }

  private static let memberNames =
    "object, keyPaths, options, or entity, filter, sort, section, limit, keys, aggregate; visible, context"

  /// Changes the members that a body of `PATCH …/cells/{c}` names. Setting another object keeps everything else. A cell
  /// that is given an object no longer shows a query, and vice versa.
  mutating func apply(_ body: Value) throws(Problem) {
    guard case .object(let members) = body else {
      throw Problem(.invalidValue, "a cell's binding must be a JSON object with \(Self.memberNames)")
    }
    try applySubject(members)
    for name in members.members.keys {
      let value = members[name] ?? .null
      switch name {
      case "object", "entity": break
      case "filter", "sort", "section", "limit", "keys", "aggregate": try applyToQuery(name, value)
      case "keyPaths": keyPaths = value.isNull ? nil : try Self.strings(value, name)
      case "options": options = value.isNull ? [.new, .initial] : try Self.options(value)
      case "context":
        context = try Self.string(value, name).map { text throws(Problem) in
          try EchoedText(text, mistake: .invalidValue)
        }
      case "visible":
        guard case .bool(let flag) = value else { throw Problem(.invalidValue, "visible must be true or false") }
        isVisible = flag
      default:
        throw Problem(.invalidValue, "'\(name)' is not a member of a binding; it has \(Self.memberNames)")
      }
    }
    if keyPaths?.isEmpty == true { throw Problem(.invalidValue, "keyPaths must have at least one key path") }
    if query != nil, keyPaths != nil || options != [.new, .initial] {
      throw Problem(.invalidValue, "a live query has keys; keyPaths and options are for an object")
    }
  }

  /// Applies the members that determine whether an object or a query is shown.
  private mutating func applySubject(_ members: JSONObject) throws(Problem) {
    if let value = members["object"] {
      object = try Self.reference(value)
      query = nil
    }
    guard let value = members["entity"] else { return }
    guard let entity = try Self.string(value, "entity") else {
      query = nil
      return
    }
    guard members["object"] ?? .null == .null else {
      throw Problem(.invalidValue, "a cell shows an object or a live query, and the binding names both")
    }
    // The members of the former kind of binding mean nothing to a query.
    if query == nil { (object, keyPaths, options) = (nil, nil, [.new, .initial]) }
    if query == nil { query = Query.Words(entity: entity) } else { query?.entity = entity }
  }

  private mutating func applyToQuery(_ name: String, _ value: Value) throws(Problem) {
    guard query != nil else {
      if value.isNull { return }
      throw Problem(.invalidValue, "\(name) is for a live query, which names its entity")
    }
    switch name {
    case "filter": query?.filter = try Self.string(value, name)
    case "sort": query?.sort = try Self.string(value, name)
    case "section": query?.section = try Self.string(value, name)
    case "aggregate":
      if case .array = value {
        query?.aggregate = try Self.strings(value, name).joined(separator: ",")
      } else {
        query?.aggregate = try Self.string(value, name)
      }
    case "keys": query?.keys = value.isNull ? nil : try Self.strings(value, name)
    default:
      let limit = value.wholeNumber.map(Int.init)
      guard value.isNull || limit ?? -1 >= 0 else {
        throw Problem(.invalidValue, "limit must be a whole number from 0")
      }
      query?.limit = limit
    }
  }

  /// Adds the binding as JSON, with the defaults of everything that was left out.
  func describe(in body: inout JSONObject) {
    if let query {
      query.describe(in: &body)
    } else {
      body["object"] = object.map(Value.reference) ?? .null
      body["keyPaths"] = keyPaths.map { .array($0.map(Value.string)) } ?? .null
      body["options"] = .array(options.optionNames.map(Value.string))
    }
    body["visible"] = .bool(isVisible)
    body["context"] = context.map { .string($0.text) } ?? .null
  }

  /// Returns true if the body of a `PATCH` has the member `object`, even if that is null.
  static func namesObject(_ body: Value) -> Bool {
    guard case .object(let members) = body else { return false }
    return members["object"] != nil
  }

  private static func reference(_ value: Value) throws(Problem) -> Reference? {
    if value.isNull { return nil }
    guard case .string(let text) = value, let reference = Reference(text) else {
      throw Problem(.invalidValue, "object must be a reference such as \"Account/1\", or null")
    }
    return reference
  }

  private static func strings(_ value: Value, _ name: String) throws(Problem) -> [String] {
    guard case .array(let elements) = value else { throw Problem(.invalidValue, "\(name) must be an array of strings") }
    var strings: [String] = []
    for element in elements {
      guard case .string(let text) = element else {
        throw Problem(.invalidValue, "\(name) must be an array of strings")
      }
      strings.append(text)
    }
    return strings
  }

  private static func string(_ value: Value, _ name: String) throws(Problem) -> String? {
    switch value {
    case .null: return nil
    case .string(let text): return text
    default: throw Problem(.invalidValue, "\(name) must be a string")
    }
  }

  private static func options(_ value: Value) throws(Problem) -> ObservingOptions {
    try ObservingOptions(names: strings(value, "options"), mistake: .invalidValue)
  }

  // MARK: Memory

  /// The size of the client's text in bytes.
  var textBytes: Int {
    let words = [query?.filter, query?.sort, query?.section, context?.text].reduce(0) { $0 + ($1?.utf8.count ?? 0) }
    return ((keyPaths ?? []) + (query?.keys ?? [])).reduce(words) { $0 + $1.utf8.count }
  }

  /// Returns the size of a cell with this binding that shows a target.
  func weight(showing target: CellTarget) -> Int {
    StreamWeight.cell + textBytes + target.observations.count * StreamWeight.observation
      + (target.finished?.rowCount ?? 0) * StreamWeight.row
  }
}

extension ObservingOptions {
  /// Creates options from their names. Throws a problem of the code `mistake` for an unknown name.
  init(names: [String], mistake: ProblemCode) throws(Problem) {
    var options: ObservingOptions = []
    if names != ["none"] {
      for name in names {
        guard let option = ObservingOptions(name: name) else {
          throw Problem(mistake, "'\(name)' is not an option; the options are new, old, initial, prior, or none alone")
        }
        options.insert(option)
      }
    }
    self = options
  }
}

/// The resolved target of a binding: observations of an object, a live query, or nothing.
struct CellTarget {
  /// The observations of an object.
  var observations: [Observation] = []
  /// The first states of the observations, if they have been evaluated.
  var initial: [Change]?
  /// The live query.
  var query: Query?
  /// The live query with its rows, if it is not watched yet.
  var finished: PreparedQuery?

  /// The object that the binding names, if it does not exist.
  var missing: Reference?

  var isEmpty: Bool { observations.isEmpty && query == nil }
}

extension StreamServices {
  /// The observer that watches the queries of bindings while one request changes cells, so that no query is forgotten
  /// in between.
  static let holder = ObserverID(0)

  /// Returns the query that a binding names, or nil if it names none. Throws the problem of an invalid query.
  func query(of binding: CellBinding, _ schema: Schema) throws(Problem) -> Query? {
    guard let words = binding.query else { return nil }
    return try Problem.translating(try Query(words, in: schema, for: binding.viewer))
  }

  /// Returns the observations of a binding. With `mayBeGone`, its object need not exist any more.
  func observations(
    of binding: CellBinding, _ state: ModelState, mayBeGone: Bool = false
  ) throws(Problem) -> [Observation] {
    guard let object = binding.object else { return [] }
    if !mayBeGone { _ = try state.requireRecord(object, for: binding.viewer) }
    return try observations(
      of: object, binding.keyPaths, options: binding.options, context: binding.context, for: binding.viewer, in: state)
  }

  /// Resolves a binding. Throws the problem of an invalid one, and `too-many-queries`; registers nothing. With
  /// `toleratesMissing`, a missing object is not an error.
  func target(
    of binding: CellBinding, _ prepared: [Query: PreparedQuery], for client: ClientAddress,
    _ publication: borrowing Publication, mayBeGone: Bool = false, toleratesMissing: Bool = false
  ) throws(Problem) -> CellTarget {
    let state = publication.snapshot.state
    if toleratesMissing, !mayBeGone, let object = binding.object, !state.exists(object, for: binding.viewer) {
      // Everything else still has to be valid.
      _ = try observations(of: binding, state, mayBeGone: true)
      return CellTarget(missing: object)
    }
    guard let query = try query(of: binding, state.schema) else {
      return CellTarget(observations: try observations(of: binding, state, mayBeGone: mayBeGone))
    }
    return CellTarget(query: query, finished: try finish(query, prepared[query], for: client, publication))
  }

  /// Watches the queries of all targets, charged to a client, while `body` runs. Throws `too-many-queries` if they are
  /// too many together; then `body` does not run.
  func holding<Result>(
    _ targets: [CellTarget], for client: ClientAddress, _ publication: inout Publication,
    _ body: (inout Publication) throws(Problem) -> Result
  ) throws(Problem) -> Result {
    publication.queries.charge(Self.holder, to: QueryPayer(client))
    defer {
      publication.queries.remove(Self.holder)
      publication.queries.discharge(Self.holder, of: QueryPayer(client))
    }
    for (index, target) in targets.enumerated() {
      guard let query = target.query else { continue }
      if publication.queries.result(of: query) == nil {
        try checkRoom(rows: target.finished?.rowCount ?? 0, for: client, publication)
      }
      publication.watch(query, QueryObserver(id: Self.holder, cell: "\(index)"), target.finished)
    }
    return try body(&publication)
  }
}
