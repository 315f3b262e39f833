import CEL
package import HTTPServer
package import KeyValueModel
import KeyValueObserving
package import Store
import Support

/// Opens streams with cells, and changes the cells of open streams for clients.
package struct CellStreams: Sendable {
  private let registry: StreamRegistry
  private var services: StreamServices { registry.services }

  /// Creates the operations on the streams of a registry.
  package init(_ registry: StreamRegistry) { self.registry = registry }

  /// Opens a stream with these cells for a client who may read what `viewer` may, resuming from a cursor if that is
  /// possible. Throws the problem of an invalid binding before anything is registered, and `too-many-…`.
  package func open(
    _ bindings: [String: Value], cursor: String?, overflow: OverflowPolicy, for client: ClientAddress = .unknown,
    _ viewer: Viewer? = nil, in store: Store, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    let parsed = try services.parse(bindings, for: viewer)
    let request = CellStreamOpening.Request(cursor: cursor, overflow: overflow, client: client, viewer: viewer)
    let opening = try CellStreamOpening(parsed, request, in: store, services, isAbandoned)
    return try registry.open(opening, in: store, isAbandoned)
  }

  /// Resumes a stream that was cut, for a client who may read what `viewer` may. A stream that is still open is taken
  /// over: its connection ends. Throws `unknown-stream`, and `overloaded` if the stream cannot be taken over.
  func resume(
    _ name: String, _ request: CellStreamOpening.Request, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) -> EventStream {
    for _ in 0..<Self.attempts {
      let cut = try cutCells(of: name, for: request.viewer, store, isAbandoned)
      let opening = try CellStreamOpening(cut.bindings, resuming: cut, request, in: store, services, isAbandoned)
      do throws(Problem) {
        return try registry.open(opening, in: store, isAbandoned)
      } catch {
        // Another connection may have been faster: the stream is taken over from it as well.
        guard error.code == .unknownStream else { throw error }
      }
    }
    throw Problem(.overloaded, "other connections keep taking the stream over")
  }

  /// The maximum number of attempts to take a stream over while other connections do the same.
  private static let attempts = 8
  /// The time that a connection may take to end when its stream is taken over, in milliseconds.
  private static let takeoverMilliseconds = 5_000

  /// Returns the cells of a stream that was cut. Cuts the connection of a stream that is open.
  private func cutCells(
    of name: String, for viewer: Viewer?, _ store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) -> CutCells {
    let id = try registry.id(of: name)
    var ending: StreamID?
    for _ in 0..<Self.takeoverMilliseconds where !isAbandoned() {
      let state = store.snapshot.state
      let found = try registry.contents.withLock { contents throws(Problem) -> (cut: CutCells?, open: StreamID?) in
        if let entry = contents.cut.entry(id, at: services.now()) {
          return (try CutCells(entry, for: viewer, in: state, services), nil)
        }
        return (nil, try stream(id, contents).id)
      }
      if let cut = found.cut { return cut }
      if let open = found.open, open != ending {
        services.hub.post([.cutStream(open)], position: nil)
        ending = open
      }
      SystemThread.pause(milliseconds: 1)
    }
    throw Problem(.overloaded, "the present connection of the stream does not end")
  }

  /// Throws `unknown-stream` if no client can resume a stream of this name.
  func requireResumable(_ name: String) throws(Problem) {
    let id = try registry.id(of: name)
    try registry.contents.withLock { contents throws(Problem) in
      if contents.cut.entry(id, at: services.now()) == nil { _ = try stream(id, contents) }
    }
  }

  /// Returns the viewer for a stream that `subject` resumes: `viewer` if this is the identity that opened the stream,
  /// and otherwise the viewer that the stream has.
  func viewer(of name: String, for viewer: Viewer?, _ subject: String?) throws(Problem) -> Viewer? {
    let id = try registry.id(of: name)
    return try registry.contents.withLock { contents throws(Problem) in
      let cut = contents.cut.entry(id, at: services.now())?.stream
      let stream = if let cut { cut } else { try stream(id, contents) }
      return stream.opener == subject.map { ExactText($0) } ? viewer : stream.viewer
    }
  }

  /// Throws `unknown-stream` if no stream with cells is open under a name, and `unknown-cell`.
  package func require(_ name: String, _ cell: String? = nil) throws(Problem) {
    let id = try registry.id(of: name)
    try registry.contents.withLock { contents throws(Problem) in
      let stream = try stream(id, contents)
      if let cell { _ = try stream.require(cell) }
    }
  }

  /// Binds cells of an open stream as the bodies say, and ends its other cells: all or nothing. Returns the cells as
  /// they are now.
  package func bindAll(
    _ bindings: [String: Value], in name: String, _ store: Store, within work: ReadingWork? = nil
  ) throws(Problem) -> JSONObject {
    try bind(bindings, in: name, replacingAll: true, store, work) { $0.describeCells($0.cells.sorted.map(\.key)) }
  }

  /// Binds one cell of an open stream as a body says. Returns the cell as it is now.
  package func bind(
    _ cell: String, to body: Value, in name: String, _ store: Store, within work: ReadingWork? = nil
  ) throws(Problem) -> JSONObject {
    try bind([cell: body], in: name, replacingAll: false, store, work) { stream throws(Problem) in
      try stream.describeCell(cell)
    }
  }

  private func bind(
    _ bindings: [String: Value], in name: String, replacingAll: Bool, _ store: Store, _ work: ReadingWork?,
    describe: (CellStream) throws(Problem) -> JSONObject
  ) throws(Problem) -> JSONObject {
    let parsed = try services.parse(bindings, for: try viewer(of: name))
    let prepared = try prepare(try services.queries(of: parsed, store.schema), store)
    let wanted: Wanted = { stream, state throws(Problem) in try stream.work(for: parsed, in: state) }
    return try update(name, store, work, evaluating: wanted) { stream, publication throws(Problem) in
      let update = try stream.bind(parsed, replacingAll: replacingAll, prepared, &publication)
      return (update, try describe(stream))
    }
  }

  /// Changes the members of cells' bindings that the bodies name, ends the cells whose body is null, and makes those
  /// that do not exist: all or nothing. Returns the cells as they are now.
  package func patchAll(
    _ bodies: [String: Value], in name: String, _ store: Store, within work: ReadingWork? = nil
  ) throws(Problem) -> JSONObject {
    try StreamServices.checkNames(bodies.keys)
    let sorted = bodies.sorted { $0.key < $1.key }.map { (name: $0.key, body: $0.value) }
    return try patch(sorted, toleratesMissing: true, in: name, store, work) {
      $0.describeCells($0.cells.sorted.map(\.key))
    }
  }

  /// Changes the members of one cell's binding that a body names. Returns the cell as it is now.
  package func patch(
    _ cell: String, in name: String, _ body: Value, _ store: Store, within work: ReadingWork? = nil
  ) throws(Problem) -> JSONObject {
    try patch([(cell, body)], toleratesMissing: false, in: name, store, work) { stream throws(Problem) in
      try stream.describeCell(cell)
    }
  }

  private func patch(
    _ bodies: [(name: String, body: Value)], toleratesMissing: Bool, in name: String, _ store: Store,
    _ work: ReadingWork?, describe: (CellStream) throws(Problem) -> JSONObject
  ) throws(Problem) -> JSONObject {
    let patched = { (stream: CellStream) throws(Problem) in
      try stream.patched(bodies, toleratesMissing: toleratesMissing).bindings
    }
    let id = try registry.id(of: name)
    let bindings = try registry.contents.withLock { contents throws(Problem) in try patched(try stream(id, contents)) }
    let prepared = try prepare(try services.queries(of: bindings, store.schema), store)
    let wanted: Wanted = { stream, state throws(Problem) in try stream.work(for: try patched(stream), in: state) }
    return try update(name, store, work, evaluating: wanted) { stream, publication throws(Problem) in
      let update = try stream.patch(bodies, toleratesMissing: toleratesMissing, prepared, &publication)
      return (update, try describe(stream))
    }
  }

  /// Returns one cell, or all if `cell` is nil, as `GET` shows them.
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

  /// Ends one cell, or all if `cell` is nil.
  package func end(_ cell: String?, in name: String, _ store: Store) throws(Problem) {
    try update(name, store, nil, evaluating: { _, _ in CellStream.BindingWork() }) {
      stream, publication throws(Problem) in
      if let cell { _ = try stream.require(cell) }
      stream.end(cell.map { [$0] } ?? stream.cells.sorted.map(\.key), &publication)
      stream.reservePending()
      return (stream.makeUpdate(), ())
    }
  }

  /// Returns the viewer whose read rules apply to an open stream, or nil if none do.
  private func viewer(of name: String) throws(Problem) -> Viewer? {
    let id = try registry.id(of: name)
    return try registry.contents.withLock { contents throws(Problem) in try stream(id, contents).viewer }
  }

  private func prepare(_ queries: Set<Query>, _ store: Store) throws(Problem) -> [Query: PreparedQuery] {
    try Problem.translating(try store.prepare(queries))
  }

  /// A function that returns the work that a request needs in a state.
  private typealias Wanted = (CellStream, ModelState) throws(Problem) -> CellStream.BindingWork

  /// The maximum number of times that values are computed which others change meanwhile. After that, the cells receive
  /// them later.
  private static let evaluations = 4

  /// Runs `body` on a stream and sends what its cells receive as a result, as one revision. The values for that are
  /// computed while others write. Throws `too-many-steps` if they take more steps than `work` has, or a request by
  /// default.
  private func update<Result: Sendable>(
    _ name: String, _ store: Store, _ work: ReadingWork?, evaluating wanted: Wanted,
    _ body: (CellStream, inout Publication) throws(Problem) -> (CellUpdate, Result)
  ) throws(Problem) -> Result {
    let id = try registry.id(of: name)
    var values = ObservedValues(steps: work?.limit ?? store.limits.queryOpeningCost)
    var following = CollectionFollowing()
    defer { following.end(in: store) }
    var number = 1
    while true {
      let snapshot = store.snapshot
      let needed = try registry.contents.withLock { contents throws(Problem) in
        try wanted(try stream(id, contents), snapshot.state)
      }
      do throws(ModelError) {
        try values.evaluate(needed.evaluated, in: snapshot.state, at: snapshot.revision)
        try following.follow(needed.registered, in: store, steps: work?.limit)
      } catch {
        work?.spend(.max)
        throw Problem(error)
      }
      let result = try store.withPublication { publication throws(Problem) -> Result? in
        let commits = publication.publishedHistory.commits(after: snapshot.revision)
        let isCurrent = values.bringUp(through: commits, to: publication.snapshot.revision)
        guard isCurrent || number == Self.evaluations else { return nil }
        return try apply(body, to: id, isCurrent ? values : nil, &publication)
      }
      if let result { return result }
      number += 1
    }
  }

  private func apply<Result: Sendable>(
    _ body: (CellStream, inout Publication) throws(Problem) -> (CellUpdate, Result), to id: StreamID,
    _ values: ObservedValues?, _ publication: inout Publication
  ) throws(Problem) -> Result {
    try registry.contents.withLock { contents throws(Problem) in
      let stream = try stream(id, contents)
      let revision = publication.snapshot.revision
      stream.values = values
      defer { stream.values = nil }
      if values == nil, !stream.cells.isSuspended {
        stream.cells.suspendOwingState()
        services.hub.post([stream.miss(.state(at: revision))], position: nil)
      }
      let (update, result) = try body(stream, &publication)
      let text = stream.cells.encode(
        update, at: revision, services.encoder, isFirstOfID: stream.isUntold(revision))
      if !text.isEmpty {
        stream.noteTold(revision)
        let position = StreamPosition.state(at: revision)
        let delivery = text.event(at: position).map { Delivery.stream(stream.id, $0) } ?? stream.miss(position)
        services.hub.post([delivery], position: nil)
      }
      return result
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
  /// Reads bindings by the names of cells, and returns them in the order of the names. Throws the problem of an invalid
  /// binding, and `too-many-cells`.
  func parse(
    _ bindings: [String: Value], for viewer: Viewer?
  ) throws(Problem) -> [(name: String, binding: CellBinding)] {
    guard bindings.count <= limits.cells else {
      throw Problem(.tooManyCells, "\(bindings.count) cells; a stream has at most \(limits.cells)")
    }
    try Self.checkNames(bindings.keys)
    var parsed: [(name: String, binding: CellBinding)] = []
    for (name, body) in bindings.sorted(by: { $0.key < $1.key }) {
      parsed.append((name, try CellBinding(body, for: viewer)))
    }
    return parsed
  }

  /// Throws if one of the names is not valid for a cell.
  static func checkNames(_ names: some Sequence<String>) throws(Problem) {
    for name in names.sorted() where Reference(entity: "cell", id: name) == nil {
      throw Problem(.invalidValue, "'\(name)' is not a cell's name, which is 1 to 128 letters, digits and . _ ~ -")
    }
  }

  /// Returns the queries that bindings name. Throws the problem of an invalid one.
  func queries(of bindings: [(name: String, binding: CellBinding)], _ schema: Schema) throws(Problem) -> Set<Query> {
    var queries: Set<Query> = []
    for (_, binding) in bindings {
      if let query = try query(of: binding, schema) { queries.insert(query) }
    }
    return queries
  }
}
