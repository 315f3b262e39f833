import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// Serves objects in pages: the objects of one entity, or all objects.
struct FetchHandler: Sendable {
  let store: Store
  let pages: PageStore
  let readings: Readings
  private let extents = ExtentCache()

  /// The maximum number of objects of a fetch that runs on the thread of its connection. A larger one takes so long
  /// that it must not hold up others.
  private static let fewObjects = 1000

  init(store: Store, pages: PageStore, readings: Readings) {
    self.store = store
    self.pages = pages
    self.readings = readings
  }

  /// `GET /v1/objects/{Entity}`: all objects of an entity or those that match a filter, in a sort order, in sections.
  func fetch(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (name, target) = (context[.entity], context.target)
    let entity = try Problem.translating(try store.schema.requireEntity(name))
    // The URL may be read as a stream too: the parameters of the stream alone are allowed.
    try context.checkParameters()
    var words = Query.Words(entity: name)
    (words.filter, words.sort, words.section) = (target["filter"], target["sort"], target["section"])
    words.aggregate = target["aggregate"]
    let query = try Problem.translating(try Query(words, in: store.schema, for: context.viewer))
    return try page(request, context, of: [entity]) { state throws(Problem) in
      try Problem.translating(try rows(of: query, in: state))
    } encoder: { [viewer = context.viewer] state, target, budget throws(Problem) in
      try ObjectEncoder(
        state: state, guarded: viewer.map { GuardedReader(state, for: $0) }, entity: entity, target: target,
        takesPaths: true, budget: budget)
    }
  }

  /// Returns all rows of a query, with its aggregates. Sections are ordered as in a live query.
  private func rows(of query: Query, in state: MeteredState) throws(ModelError) -> PageStore.Rows {
    let (found, failed) = try state.fetch(query, isSorted: query.section == nil) {
      extents.references(of: query.entity, in: state.state)
    }
    guard query.section != nil || !query.aggregates.isEmpty else {
      return PageStore.Rows(references: found, failed: failed)
    }
    let rows =
      if let viewer = query.viewer {
        try self.rows(of: query, found, in: GuardedReader(state, for: viewer))
      } else {
        try self.rows(of: query, found, in: state)
      }
    var folds = QueryFolds(of: query)
    for row in rows { folds.insert(row) }
    var end: [UInt8] = []
    guard query.section != nil else {
      QueryResult(query, rows: [], folds: folds, failed: failed).appendSummary(to: &end)
      return PageStore.Rows(references: found, failed: failed, end: end)
    }
    try state.spend(onSorting: rows)
    let result = QueryResult(query, rows: rows, folds: folds, failed: failed)
    result.appendSummary(to: &end)
    return PageStore.Rows(references: result.window.map(\.reference), failed: failed, end: end)
  }

  /// Returns the objects as rows of a query that shows no keys. `reader` leaves out what the viewer may not read.
  private func rows(
    of query: Query, _ references: [Reference], in reader: some ObjectReader
  ) throws(ModelError) -> [QueryRow] {
    // Rows without sections are in order already.
    let order = query.section == nil ? SortOrder() : query.order
    var rows: [QueryRow] = []
    rows.reserveCapacity(references.count)
    for reference in references {
      rows.append(
        QueryRow(
          entity: query.entity, section: query.section.map { QuerySection($0.value(of: reference, in: reader)) },
          order: order, rank: order.rank(of: reference, in: reader), shown: [],
          folded: query.aggregates.map { $0.value(of: reference, in: reader) }))
      reader.work?.spend(query.aggregates.count)
      try reader.work?.check()
    }
    return rows
  }

  /// `GET /v1/objects`: the objects of all entities, or of the entities in `entities` and their subentities. Entities
  /// are in the order of the schema, the objects of each in the order of their references.
  func fetchAll(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try context.checkParameters()
    var entities = store.schema.entities
    if let names = target.list("entities") {
      let wanted = try Problem.translating { () throws(ModelError) in
        try names.map { name throws(ModelError) in try store.schema.requireEntity(name) }
      }
      entities.removeAll { entity in !wanted.contains { entity.isKind(of: $0.name) } }
    }
    return try page(request, context, of: entities) { [entities] state in
      PageStore.Rows(references: entities.flatMap { ownReferences(of: $0, in: state) })
    } encoder: { state, _, budget in
      ObjectEncoder(state: state, budget: budget)
    }
  }

  /// Returns the references of an entity's own objects, without those of its subentities.
  private func ownReferences(of entity: Entity, in state: MeteredState) -> [Reference] {
    let references = extents.references(of: entity, in: state.state)
    guard state.work?.spend(references.count) ?? true else { return [] }
    guard store.schema.family(of: entity).count > 1 else { return references }
    let prefix = Array("\(entity.name)/".utf8)
    return references.filter { $0.text.utf8.starts(with: prefix) }
  }

  /// Returns one page: the first one of `rows` in the present state, or a later one of a kept fetch, whose target is
  /// passed to `encoder`.
  private func page(
    _ request: borrowing Request, _ context: RequestContext, of entities: [Entity],
    rows: @escaping @Sendable (MeteredState) throws(Problem) -> PageStore.Rows,
    encoder: @escaping @Sendable (MeteredState, Target, ReadingBudget) throws(Problem) -> ObjectEncoder
  ) throws(Problem) -> HandlerResponse {
    let owner = PageStore.Owner(context.requester)
    let target = context.target
    let limits = 0...pages.limits.objects
    let ownLimit = try target.limit(in: limits)
    let page = target["page"]
    let state = store.snapshot.state
    let client = request.client
    let isLong = page == nil && entities.reduce(0) { $0 + state.objectCount(of: $1) } > Self.fewObjects
    return try readings.response(to: request, isLong: isLong) { [self] budget throws(Problem) in
      var word: String?
      let fetch: PageStore.Fetch
      var offset = 0
      if let page {
        (word, fetch, offset) = try pages.fetch(page: page, target, owner: owner)
      } else {
        let snapshot = store.snapshot
        budget.cursor = store.cursor(snapshot.revision)
        let rows = try rows(budget.metered(snapshot.state))
        try budget.check()
        fetch = PageStore.Fetch(snapshot: snapshot, rows: rows, target: target, owner: owner)
      }
      let references = fetch.rows.references
      let firstLimit = try fetch.target.limit(in: limits)
      let limit = ownLimit ?? firstLimit ?? pages.limits.objects
      let end = min(offset + limit, references.count)
      let revision = fetch.snapshot.revision
      var bytes = Array("{\"revision\":\(revision)".utf8)
      QueryCounts(count: references.count, total: references.count, failed: fetch.rows.failed).append(to: &bytes)
      bytes.append(contentsOf: ",\"objects\":[".utf8)
      let encoder = try encoder(budget.metered(fetch.snapshot.state), fetch.target, budget)
      for index in offset..<end {
        if index > offset { bytes.append(UInt8(ascii: ",")) }
        try encoder.append(references[index], to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
      bytes.append(contentsOf: fetch.rows.end)
      try budget.check(bytes)
      var link: String?
      if end > offset, end < references.count {
        let kept = if let word { word } else { try pages.keep(fetch, for: client) }
        let next = "\(kept).\(end)"
        bytes.append(contentsOf: ",\"next\":\"\(next)\"".utf8)
        link = fetch.link(toPage: next, limit: target["limit"] ?? fetch.target["limit"])
      }
      bytes.append(UInt8(ascii: "}"))
      var response = Response.json(bytes, cursor: store.cursor(revision))
      response.fields[.link] = link
      return response
    }
  }
}
