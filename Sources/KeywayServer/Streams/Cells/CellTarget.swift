import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// What a binding names, resolved: observations of an object, a live query, or nothing.
struct CellTarget {
  /// What is observed of an object.
  var observations: [Observation] = []
  /// Their first states, where these have been evaluated.
  var initial: [Change]?
  /// The live query.
  var query: Query?
  /// The live query with its rows, where it is not watched yet.
  var finished: PreparedQuery?

  /// The object that was named and is not there.
  var missing: Reference?

  var isEmpty: Bool { observations.isEmpty && query == nil }
}

extension StreamServices {
  /// Watches the queries of bindings while the cells of one request change hands, so that none is forgotten in between.
  static let holder = ObserverID(0)

  /// The query that a binding names, nil where it names none. Throws what is wrong with it.
  func query(of binding: CellBinding, _ schema: Schema) throws(Problem) -> Query? {
    guard let words = binding.query else { return nil }
    return try Problem.translating(try Query(words, in: schema, for: binding.viewer))
  }

  /// The observations of a binding; with `mayBeGone` its object need not be there any more.
  func observations(
    of binding: CellBinding, _ state: ModelState, mayBeGone: Bool = false
  ) throws(Problem) -> [Observation] {
    guard let object = binding.object else { return [] }
    if !mayBeGone { _ = try state.requireRecord(object, for: binding.viewer) }
    return try observations(
      of: object, binding.keyPaths, options: binding.options, context: binding.context, for: binding.viewer, in: state)
  }

  /// What a binding names. Throws what is wrong with it, and `too-many-queries`; registers nothing. With
  /// `toleratesMissing` an object that is not there is no mistake.
  func target(
    of binding: CellBinding, _ prepared: [Query: PreparedQuery], for client: ClientAddress,
    _ publication: borrowing Publication, mayBeGone: Bool = false, toleratesMissing: Bool = false
  ) throws(Problem) -> CellTarget {
    let state = publication.snapshot.state
    if toleratesMissing, !mayBeGone, let object = binding.object, !state.isThere(object, for: binding.viewer) {
      // Everything else has to be right all the same.
      _ = try observations(of: binding, state, mayBeGone: true)
      return CellTarget(missing: object)
    }
    guard let query = try query(of: binding, state.schema) else {
      return CellTarget(observations: try observations(of: binding, state, mayBeGone: mayBeGone))
    }
    return CellTarget(query: query, finished: try finish(query, prepared[query], for: client, publication))
  }

  /// Has the queries of all targets watched, which a client pays for, while `body` runs. Throws `too-many-queries`
  /// where they are too many together, and runs nothing then.
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
