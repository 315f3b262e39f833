import HTTPServer
import KeyValueModel
import ModelStore

/// Objects by the page: those of one entity, or all of them.
struct FetchHandler: Sendable {
  let store: Store
  let pages: PageStore
  let limits: RequestLimits
  private let extents = ExtentCache()

  init(store: Store, pages: PageStore, limits: RequestLimits) {
    self.store = store
    self.pages = pages
    self.limits = limits
  }

  /// `GET /v1/objects/{Entity}`, all of them or those that meet a filter, in a sort order.
  func fetch(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (name, target) = (context[.entity], context.target)
    let entity = try Problem.translating { () throws(ModelError) in try store.schema.requireEntity(name) }
    // One URL, two ways to read it: what is for the stream alone does not hinder.
    try target.allowOnly(
      "filter", "sort", "section", "limit", "page", "keys", "expand", "context", "since", "overflow")
    let filter = try filter(target, entity)
    let order = try order(target, entity)
    // What names a fetch beside its entity; a line feed stands in none of them by itself.
    let subject = ([name] + ["filter", "section", "sort", "keys", "expand"].map { target[$0] ?? "" })
      .joined(separator: "\n")
    return try page(target, subject: subject) { state throws(Problem) in
      try Problem.translating { () throws(ModelError) in
        try state.fetch(entity, where: filter, by: order, costLimit: pages.limits.filterCost) {
          extents.references(of: entity, in: state)
        }
      }
    } encoder: { state throws(Problem) in
      try ObjectEncoder(state: state, entity: entity, target: target, limits: limits)
    }
  }

  private func filter(_ target: Target, _ entity: Entity) throws(Problem) -> Filter? {
    guard let text = target["filter"] else { return nil }
    do throws(KeyExpression.Mistake) {
      return try Filter(text, of: entity, in: store.schema)
    } catch {
      throw Problem(.malformedFilter, "line \(error.line), column \(error.column): \(error.message)")
    }
  }

  private func order(_ target: Target, _ entity: Entity) throws(Problem) -> SortOrder? {
    try Problem.translating { () throws(ModelError) in
      let order = try target["sort"].map { text throws(ModelError) in
        try SortOrder(text, of: entity, in: store.schema)
      }
      guard let section = target["section"] else { return order }
      return (order ?? SortOrder()).within(try SortOrder.Key(section, of: entity, in: store.schema))
    }
  }

  /// `GET /v1/objects`: the objects of all entities, or of those that `entities` names and what extends them; entities
  /// in the order of the schema, the objects of each in that of their references.
  func fetchAll(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try target.allowOnly("limit", "page", "entities")
    var entities = store.schema.entities
    if let names = target.list("entities") {
      let wanted = try Problem.translating { () throws(ModelError) in
        try names.map { name throws(ModelError) in try store.schema.requireEntity(name) }
      }
      entities.removeAll { entity in !wanted.contains { entity.isKind(of: $0.name) } }
    }
    return try page(target, subject: "?\(target["entities"] ?? "")") { state in
      entities.flatMap { ownReferences(of: $0, in: state) }
    } encoder: { state in
      ObjectEncoder(state: state)
    }
  }

  /// The references of an entity's objects, those of its subclasses left out.
  private func ownReferences(of entity: Entity, in state: ModelState) -> [Reference] {
    let references = extents.references(of: entity, in: state)
    guard store.schema.family(of: entity).count > 1 else { return references }
    let prefix = Array("\(entity.name)/".utf8)
    return references.filter { $0.text.utf8.starts(with: prefix) }
  }

  /// One page: the first of what `references` gives of the present state, or one of a fetch that is kept. `subject` says
  /// what is fetched, so that a page is not continued under another name.
  private func page(
    _ target: Target, subject: String, references: (ModelState) throws(Problem) -> [Reference],
    encoder: (ModelState) throws(Problem) -> ObjectEncoder
  ) throws(Problem) -> HandlerResponse {
    let limit = try limit(target)
    var word: String?
    let fetch: PageStore.Fetch
    var offset = 0
    if let page = target["page"] {
      (word, fetch, offset) = try pages.fetch(page: page, subject: subject)
    } else {
      let snapshot = store.snapshot
      fetch = PageStore.Fetch(
        snapshot: snapshot.state, revision: snapshot.revision, references: try references(snapshot.state),
        subject: subject, expiry: 0)
    }
    let end = min(offset + limit, fetch.references.count)
    var bytes = Array("{\"revision\":\(fetch.revision),\"count\":\(fetch.references.count),\"objects\":[".utf8)
    var encoder = try encoder(fetch.snapshot)
    for index in offset..<end {
      if index > offset { bytes.append(UInt8(ascii: ",")) }
      try encoder.append(fetch.references[index], to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
    if end < fetch.references.count {
      let word = word ?? pages.keep(fetch.snapshot, fetch.revision, fetch.references, subject: subject)
      bytes.append(contentsOf: ",\"next\":\"\(word).\(end)\"".utf8)
    }
    bytes.append(UInt8(ascii: "}"))
    return .response(.json(bytes, cursor: store.cursor(fetch.revision)))
  }

  private func limit(_ target: Target) throws(Problem) -> Int {
    guard let text = target["limit"] else { return pages.limits.objects }
    guard let limit = Int(text), (1...pages.limits.objects).contains(limit) else {
      throw Problem(.malformedQuery, "limit is a whole number from 1 to \(pages.limits.objects)")
    }
    return limit
  }
}
