package import HTTPServer
package import KeyValueModel
import KeyValueObserving
import Locking
package import ModelStore

/// Opens streams with cells, and does what clients ask of the cells of open streams.
package struct CellStreams: Sendable {
  private let registry: StreamRegistry
  private var services: StreamServices { registry.services }

  /// Streams of a registry.
  package init(_ registry: StreamRegistry) { self.registry = registry }

  /// Opens a stream with these cells for a client who may read what `viewer` may, going on from a cursor where that can
  /// be resumed. Throws what is wrong with a binding before anything is registered, and `too-many-…`.
  package func open(
    _ bindings: [String: Value], cursor: String?, overflow: OverflowPolicy, for client: ClientAddress = .unknown,
    _ viewer: Viewer? = nil, in store: Store, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    let parsed = try services.parse(bindings, for: viewer)
    let opening = try CellStreamOpening(
      parsed, cursor: cursor, overflow: overflow, for: client, viewer, in: store, services, isAbandoned)
    return try registry.open(opening, in: store, isAbandoned)
  }

  /// Throws `unknown-stream` where no stream with cells is open under a name, and `unknown-cell`.
  package func require(_ name: String, _ cell: String? = nil) throws(Problem) {
    let id = try registry.id(of: name)
    try registry.contents.withLock { contents throws(Problem) in
      let stream = try stream(id, contents)
      if let cell { _ = try stream.require(cell) }
    }
  }

  /// Binds cells of an open stream to what the bodies say and ends its other cells: all or nothing. Gives the cells as
  /// they are now.
  package func bindAll(_ bindings: [String: Value], in name: String, _ store: Store) throws(Problem) -> JSONObject {
    try bind(bindings, in: name, replacingAll: true, store) { $0.describeCells($0.cells.sorted.map(\.key)) }
  }

  /// Binds one cell of an open stream to what a body says. Gives the cell as it is now.
  package func bind(_ cell: String, to body: Value, in name: String, _ store: Store) throws(Problem) -> JSONObject {
    try bind([cell: body], in: name, replacingAll: false, store) { stream throws(Problem) in
      try stream.describeCell(cell)
    }
  }

  private func bind(
    _ bindings: [String: Value], in name: String, replacingAll: Bool, _ store: Store,
    describe: (CellStream) throws(Problem) -> JSONObject
  ) throws(Problem) -> JSONObject {
    let parsed = try services.parse(bindings, for: try viewer(of: name))
    let prepared = try prepare(try services.queries(of: parsed, store.schema), store)
    return try update(name, store) { stream, publication throws(Problem) in
      let update = try stream.bind(parsed, replacingAll: replacingAll, prepared, &publication)
      return (update, try describe(stream))
    }
  }

  /// Changes what a body names of one cell's binding. Gives the cell as it is now.
  package func patch(_ cell: String, in name: String, _ body: Value, _ store: Store) throws(Problem) -> JSONObject {
    let id = try registry.id(of: name)
    var binding = try registry.contents.withLock { contents throws(Problem) in
      try stream(id, contents).require(cell).binding
    }
    try binding.apply(body)
    let prepared = try prepare(try services.queries(of: [(cell, binding)], store.schema), store)
    return try update(name, store) { stream, publication throws(Problem) in
      let update = try stream.patch(cell, body, prepared, &publication)
      return (update, try stream.describeCell(cell))
    }
  }

  /// One cell, or all where `cell` is nil, as `GET` shows them.
  package func describe(_ cell: String?, in name: String) throws(Problem) -> JSONObject {
    let id = try registry.id(of: name)
    return try registry.contents.withLock { contents throws(Problem) in
      let stream = try stream(id, contents)
      if let cell { return try stream.describeCell(cell) }
      var body = JSONObject()
      stream.describeDetails(in: &body)
      return body
    }
  }

  /// Ends one cell, or all where `cell` is nil.
  package func end(_ cell: String?, in name: String, _ store: Store) throws(Problem) {
    try update(name, store) { stream, publication throws(Problem) in
      if let cell { _ = try stream.require(cell) }
      stream.end(cell.map { [$0] } ?? stream.cells.sorted.map(\.key), &publication)
      stream.reservePending()
      return (stream.makeUpdate(), ())
    }
  }

  /// What the identity of an open stream may read; nil for everything.
  private func viewer(of name: String) throws(Problem) -> Viewer? {
    let id = try registry.id(of: name)
    return try registry.contents.withLock { contents throws(Problem) in try stream(id, contents).viewer }
  }

  private func prepare(_ queries: Set<Query>, _ store: Store) throws(Problem) -> [Query: PreparedQuery] {
    try Problem.translating(try store.prepare(queries))
  }

  /// Runs `body` on a stream and sends what its cells receive of it, as one revision.
  private func update<Result>(
    _ name: String, _ store: Store,
    _ body: (CellStream, inout Publication) throws(Problem) -> (CellUpdate, Result)
  ) throws(Problem) -> Result {
    let id = try registry.id(of: name)
    return try store.withPublication { publication throws(Problem) in
      try registry.contents.withLock { contents throws(Problem) in
        let stream = try stream(id, contents)
        let (update, result) = try body(stream, &publication)
        let revision = publication.snapshot.revision
        let text = stream.cells.encode(update, at: revision, services.encoder)
        if !text.isEmpty {
          let position = StreamPosition.state(at: revision)
          let delivery = text.event(at: position).map { Delivery.stream(stream.id, $0) } ?? stream.miss(position)
          services.hub.post([delivery], position: nil)
        }
        return result
      }
    }
  }

  private func stream(_ id: StreamID, _ contents: borrowing StreamRegistry.Contents) throws(Problem) -> CellStream {
    guard let stream = try registry.find(id, contents) as? CellStream else {
      throw Problem(.unknownStream, "no stream with cells is open under this name")
    }
    return stream
  }
}

extension StreamServices {
  /// Bindings by the names of cells, as they came, in the order of the names. Throws what is wrong with any of them,
  /// and `too-many-cells`.
  func parse(
    _ bindings: [String: Value], for viewer: Viewer?
  ) throws(Problem) -> [(name: String, binding: CellBinding)] {
    guard bindings.count <= limits.cells else {
      throw Problem(.tooManyCells, "\(bindings.count) cells; a stream has at most \(limits.cells)")
    }
    var parsed: [(name: String, binding: CellBinding)] = []
    for (name, body) in bindings.sorted(by: { $0.key < $1.key }) {
      guard Reference(entity: "cell", id: name) != nil else {
        throw Problem(.invalidValue, "a cell's name is 1 to 128 letters, digits and . _ ~ -, and '\(name)' is not")
      }
      parsed.append((name, try CellBinding(body, for: viewer)))
    }
    return parsed
  }

  /// The queries that bindings name. Throws what is wrong with any of them.
  func queries(of bindings: [(name: String, binding: CellBinding)], _ schema: Schema) throws(Problem) -> Set<Query> {
    var queries: Set<Query> = []
    for (_, binding) in bindings {
      if let query = try query(of: binding, schema) { queries.insert(query) }
    }
    return queries
  }
}
