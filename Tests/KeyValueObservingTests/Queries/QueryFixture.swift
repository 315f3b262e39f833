import KeyValueModel
import Testing

@testable import KeyValueObserving

/// A model with live queries, and shorthands for tests.
struct QueryFixture {
  var model: Model
  var live: LiveQueries
  private var clients: [Query: ClientList] = [:]

  /// Departments and employees.
  static let staff = """
    entities:
      Employee:
        keys:
          name:       { type: string }
          salary:     { type: integer }
          note:       { type: string }
          code:       { type: string, notifies: manual }
          department: { toOne: Department, inverse: staff }
      Manager: { extends: Employee, keys: {} }
      Department:
        keys:
          name:    { type: string }
          budget:  { type: integer }
          staff:   { toMany: Employee, inverse: department }
          payroll: { computed: staff.@sum.salary }
    """

  init(_ yaml: String = staff, filterCost: Int = 1_000_000, _ lines: String...) throws {
    model = Model(schema: try Schema(yaml: yaml))
    live = LiveQueries(filterCost: filterCost, recentLimit: 100)
    for line in lines { _ = try commit([line]) }
  }

  static func watcher(_ observer: UInt64 = 1, _ cell: String? = nil) -> QueryObserver {
    QueryObserver(id: ObserverID(observer), cell: cell)
  }

  func query(
    _ entity: String, filter: String? = nil, sort: String? = nil, section: String? = nil, limit: Int? = nil,
    keys: [String]? = nil, aggregate: String? = nil
  ) throws -> Query {
    var words = Query.Words(entity: entity)
    words.filter = filter
    words.sort = sort
    words.section = section
    words.limit = limit
    words.keys = keys
    words.aggregate = aggregate
    return try Query(words, in: model.schema)
  }

  /// Watches a query and returns it. By default it shows only names.
  @discardableResult
  mutating func watch(
    _ entity: String = "Employee", filter: String? = nil, sort: String? = nil, section: String? = nil,
    limit: Int? = nil, keys: [String] = ["name"], aggregate: String? = nil, watcher: QueryObserver = watcher()
  ) throws -> Query {
    let query = try query(
      entity, filter: filter, sort: sort, section: section, limit: limit, keys: keys, aggregate: aggregate)
    let live = try LiveQuery(query, in: model.state, costLimit: 1_000_000)
    self.live.add(live, observer: watcher)
    clients[query] = ClientList(live.result)
    return query
  }

  /// Commits the operations together. Returns the events, and checks that a client that applies them shows the same as
  /// a fetch.
  mutating func commit(_ lines: [String]) throws -> [QueryEvent] {
    let commit = try model.commit(Transaction(try lines.map(operation), writer: "w"))
    var events: [QueryEvent] = []
    live.notify(CollectionOfOne(commit), of: model.state) { events.append($0) }
    for event in events {
      guard case .content(let content) = event.outcome else { continue }
      try clients[event.query]?.apply(content, of: event.query)
    }
    for (query, client) in clients where live.result(of: query) != nil {
      #expect(client.shows(try NaiveList(query, in: model.state)), "\(query.words)")
    }
    return events
  }

  /// Commits the operations together. Returns the events of all queries as lines.
  mutating func told(_ operations: String...) throws -> [String] {
    try commit(operations).flatMap { event in
      switch event.outcome {
      case .content(let content): KeyValueObservingTests.lines(content)
      case .failed(let error): ["failed \(error.code.rawValue)"]
      }
    }
  }

  /// Returns the rows of a query, in order.
  func rows(_ query: Query) -> [String] { live.result(of: query)?.window.map(\.reference.text) ?? [] }
}

/// Returns the change of a row as a line: `move E/1 2>0 salary`, `insert E/2 >[0,1] entered`.
func line(_ change: QueryChange) -> String {
  let places = "\(change.index.map(text) ?? "")" + (change.newIndex.map { ">\(text($0))" } ?? "")
  let keys = change.keys.compactMap { key in change.row.map { key.name(in: $0.entity) } }
  return ([change.kind.rawValue, change.object.text, places, change.reason?.rawValue].compactMap { $0 } + keys)
    .joined(separator: " ")
}

/// Returns the changes of a content as lines; those of sections as `section +"a" 0` and `section -"a" 0`.
func lines(_ content: QueryContent) -> [String] {
  content.changes.map(line)
    + content.sectionChanges.map { change in
      switch change {
      case .insert(let name, let index): "section +\(name.json) \(index)"
      case .delete(let name, let index): "section -\(name.json) \(index)"
      }
    }
}

private func text(_ position: RowPosition) -> String {
  switch position {
  case .row(let row): "\(row)"
  case .sectioned(let section, let row): "[\(section),\(row)]"
  }
}
