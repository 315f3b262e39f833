internal import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Binding the cells of open streams.
extension StreamRegistry {
  /// Binds cells of an open stream to what the bodies say, and, with `replacingAll`, ends its other cells: all or nothing.
  /// Gives the cells as they are now.
  package func bind(
    _ bindings: [String: Value], in name: String, replacingAll: Bool = false, prepared: [Query: PreparedQuery],
    _ publication: inout Publication
  ) throws(Problem) -> [String: JSONObject] {
    let parsed = try parse(bindings)
    return try update(name, &publication) { stream, publication throws(Problem) in
      let names = replacingAll ? Set() : Set(stream.cells.keys)
      guard names.union(parsed.map(\.0)).count <= limits.cells else {
        throw Problem(.tooManyCells, "a stream has at most \(limits.cells) cells")
      }
      var targets: [(cell: String, binding: CellBinding, target: CellTarget)] = []
      for (cell, binding) in parsed {
        targets.append((cell, binding, try target(of: binding, prepared, publication)))
      }
      try hold(targets.map(\.target), &publication)
      defer { publication.queries.remove(Self.holder) }
      if replacingAll {
        let kept = Set(parsed.map(\.0))
        for cell in stream.cells.keys where !kept.contains(cell) { end(cell, of: stream, &publication) }
      }
      var news = CellNews()
      for (cell, binding, target) in targets { rebind(cell, to: binding, target, of: stream, &publication, &news) }
      return (news, Dictionary(uniqueKeysWithValues: parsed.map { ($0.0, describe($0.0, of: stream)) }))
    }
  }

  /// Changes what a body names of one cell's binding.
  package func patch(
    _ cell: String, in name: String, _ body: Value, prepared: [Query: PreparedQuery],
    _ publication: inout Publication
  ) throws(Problem) -> JSONObject {
    try update(name, &publication) { stream, publication throws(Problem) in
      guard var binding = stream.cells[cell]?.binding else { throw Self.unknownCell(cell) }
      try binding.apply(body)
      var news = CellNews()
      // A cell that only comes into view may have lost its object meanwhile: it is told so.
      let isSameObject = binding.object == stream.cells[cell]?.binding.object
      let isGone = isSameObject && binding.query == nil && stream.cells[cell]?.pending?.gone != nil
      let target = isGone ? CellTarget() : try target(of: binding, prepared, publication)
      try hold([target], &publication)
      defer { publication.queries.remove(Self.holder) }
      if isGone, let isShown = stream.cells[cell]?.binding.isVisible, !Self.namesObject(body) {
        // It observes nothing any more, and has still to be told so.
        let isVisible = binding.isVisible
        binding.isVisible = isShown
        stream.cells[cell]?.binding = binding
        setVisibility(isVisible, cell, of: stream, publication, &news)
      } else if stream.cells[cell]?.query != nil, target.query != nil {
        requery(cell, to: binding, target, of: stream, &publication, &news)
      } else {
        rebind(cell, to: binding, target, of: stream, &publication, &news)
      }
      return (news, describe(cell, of: stream))
    }
  }

  /// Ends the old observations before it starts the new; the same binding again does nothing.
  private func rebind(
    _ name: String, to binding: CellBinding, _ target: CellTarget, of stream: CellStream,
    _ publication: inout Publication, _ news: inout CellNews
  ) {
    if let present = stream.cells[name] {
      var withPresentVisibility = binding
      withPresentVisibility.isVisible = present.binding.isVisible
      if withPresentVisibility == present.binding {
        return setVisibility(binding.isVisible, name, of: stream, publication, &news)
      }
    }
    // What an invisible cell has not been told is not lost when only its options or its context change: it is told the
    // state instead.
    let former = stream.cells[name]
    let isOwed = former?.isOwedInitial == true || former?.pending?.commits ?? 0 > 0
    forget(name, of: stream, &publication)
    stream.cells[name] = Cell(binding: binding, told: former?.told ?? 0)
    register(
      name, target, of: stream, tellsInitial: true,
      isForced: isOwed && former?.binding.object == binding.object, &publication, &news)
  }

  /// Puts another query in the place of a cell's: it is told what turns the rows that it has into the new ones.
  private func requery(
    _ name: String, to binding: CellBinding, _ target: CellTarget, of stream: CellStream,
    _ publication: inout Publication, _ news: inout CellNews
  ) {
    guard var cell = stream.cells[name], let former = cell.query, let query = target.query else { return }
    let isChanged = former != query
    let missed =
      cell.missed
      ?? publication.queries.result(of: former).map { MissedContents(shown: $0, since: publication.snapshot.revision) }
    if isChanged {
      let watcher = QueryObserver(id: stream.observer, cell: name)
      publication.queries.remove(watcher)
      publication.queries.watch(query, watcher)
      cell.query = query
    }
    let wasPaused = cell.pending != nil
    if !wasPaused, !binding.isVisible { cell.pausedAt = publication.snapshot.revision }
    cell.binding = binding
    if wasPaused || !binding.isVisible {
      cell.pause(at: Moment(present: publication))
      if !cell.isOwedInitial { cell.missed = missed }
      if binding.isVisible, !stream.isSuspended {
        cell.resume(as: name, at: Moment(present: publication), encoder, &news)
      }
    } else if isChanged, let missed, let result = publication.queries.result(of: query) {
      let content = QueryContent(
        from: missed.shown, at: missed.since, to: result, in: publication.snapshot.state,
        at: publication.snapshot.revision)
      news.queries.append(
        QueryNews(cell: name, context: binding.context?.text, sort: .content(encoder.encoded(content))))
      cell.refreshedAt = publication.snapshot.revision
    }
    stream.cells[name] = cell
  }

  /// Whether a `PATCH` says what a cell is to show, be it nothing.
  private static func namesObject(_ body: Value) -> Bool {
    guard case .object(let members) = body else { return false }
    return members["object"] != nil
  }

  /// A cell leaves the screen, or comes back and is told in one change what it missed; a suspended stream is told that
  /// later, with the rest.
  private func setVisibility(
    _ isVisible: Bool, _ name: String, of stream: CellStream, _ publication: borrowing Publication,
    _ news: inout CellNews
  ) {
    guard var cell = stream.cells[name], cell.binding.isVisible != isVisible else { return }
    defer { stream.cells[name] = cell }
    cell.binding.isVisible = isVisible
    if !isVisible {
      if cell.pending == nil { cell.pausedAt = publication.snapshot.revision }
      cell.pause(at: Moment(present: publication))
    } else if !stream.isSuspended {
      cell.resume(as: name, at: Moment(present: publication), encoder, &news)
    }
  }

  private func describe(_ cell: String, of stream: CellStream) -> JSONObject {
    stream.cells[cell]?.described(as: cell) ?? [:]
  }

  private func end(_ cell: String, of stream: CellStream, _ publication: inout Publication) {
    forget(cell, of: stream, &publication)
    stream.cells[cell] = nil
  }

  /// Ends what a cell observes and watches.
  private func forget(_ cell: String, of stream: CellStream, _ publication: inout Publication) {
    publication.observers.remove(stream.observer, cell: cell)
    publication.queries.remove(QueryObserver(id: stream.observer, cell: cell))
  }

  /// Runs `body` on a stream and tells the stream what comes of it, as one revision: only the last event has an id.
  private func update<Result>(
    _ name: String, _ publication: inout Publication,
    _ body: (CellStream, inout Publication) throws(Problem) -> (CellNews, Result)
  ) throws(Problem) -> Result {
    try contents.withLock { contents throws(Problem) in
      let stream = try cellStream(name, contents)
      let (news, result) = try body(stream, &publication)
      let bytes = encoded(news, of: stream, publication.snapshot.revision)
      if !bytes.isEmpty, let id = stream.id {
        let position = StreamPosition.news(at: publication.snapshot.revision).rawValue
        hub.post([.stream(id, EventBytes(bytes, position: position))], position: nil)
      }
      return result
    }
  }

  /// The events that tell a stream's cells their news, counted as told; nothing where there are none.
  func encoded(_ news: CellNews, of stream: CellStream, _ revision: Revision) -> [UInt8] {
    var bytes: [UInt8] = []
    if !news.initial.isEmpty {
      let isLast = news.coalesced.isEmpty && news.queries.isEmpty && news.gone.isEmpty
      encoder.appendChange(news.initial, revision: revision, isInitial: true, hasID: isLast, to: &bytes)
      for cell in Set(news.initial.map { $0.cell ?? "" }) { stream.cells[cell]?.told += 1 }
    }
    var rest = StreamEvent(revision: revision)
    rest.changes = news.coalesced
    rest.queries = news.queries
    rest.gone = news.gone
    encoder.append(rest, to: &bytes)
    stream.count(rest)
    return bytes
  }
}

/// Live queries of cells.
extension StreamRegistry {
  /// Watches queries while the cells of one request change hands, so that none is forgotten in between.
  static let holder = ObserverID(0)

  /// The queries that bindings name, for `Store.prepare`. Throws what is wrong with any of them.
  package func queries(in bindings: [String: Value], _ schema: Schema) throws(Problem) -> Set<Query> {
    var queries: Set<Query> = []
    for (_, binding) in try parse(bindings) {
      guard let words = binding.query else { continue }
      queries.insert(try Problem.translating { () throws(ModelError) in try Query(words, in: schema) })
    }
    return queries
  }

  /// The query that a cell would show after a `PATCH`, for `Store.prepare`.
  package func query(
    patching cell: String, in name: String, _ body: Value, _ schema: Schema
  ) throws(Problem) -> Set<Query> {
    let binding = try contents.withLock { contents throws(Problem) in
      try cellStream(name, contents).cells[cell]?.binding
    }
    guard var binding else { throw Self.unknownCell(cell) }
    try binding.apply(body)
    guard let words = binding.query else { return [] }
    return [try Problem.translating { () throws(ModelError) in try Query(words, in: schema) }]
  }

  /// What a binding names. Throws what is wrong with it, and `too-many-queries`; registers nothing.
  func target(
    of binding: CellBinding, _ prepared: [Query: PreparedQuery], _ publication: borrowing Publication,
    mayBeGone: Bool = false
  ) throws(Problem) -> CellTarget {
    guard let words = binding.query else {
      return CellTarget(
        observations: try observations(binding, publication.snapshot.state, mayBeGone: mayBeGone))
    }
    let state = publication.snapshot.state
    let query = try Problem.translating { () throws(ModelError) in try Query(words, in: state.schema) }
    return CellTarget(query: query, finished: try finish(query, prepared[query], publication))
  }

  /// A query with its rows, nil where somebody watches it already. Throws `too-many-queries`, and `malformed-filter` for
  /// one that costs too much.
  func finish(
    _ query: Query, _ prepared: PreparedQuery?, _ publication: borrowing Publication
  ) throws(Problem) -> PreparedQuery? {
    guard publication.queries.result(of: query) == nil else { return nil }
    guard publication.queries.count < limits.queries else {
      throw Problem(.tooManyQueries, "as many different live queries are open as the server allows")
    }
    let finished = try Problem.translating { () throws(ModelError) in try publication.finish(query, prepared) }
    guard publication.hasRoom(for: finished) else {
      throw Problem(.tooManyQueries, "the live queries would have more rows than queries.rows allows")
    }
    return finished
  }

  /// Has the queries of all targets watched. Throws `too-many-queries`, and watches none then.
  func hold(_ targets: [CellTarget], _ publication: inout Publication) throws(Problem) {
    for (index, target) in targets.enumerated() {
      guard let query = target.query else { continue }
      guard publication.queries.count < limits.queries || publication.queries.result(of: query) != nil else {
        publication.queries.remove(Self.holder)
        throw Problem(.tooManyQueries, "as many different live queries are open as the server allows")
      }
      publication.watch(query, QueryObserver(id: Self.holder, cell: "\(index)"), target.finished)
    }
  }
}

/// Inspecting and ending cells.
extension StreamRegistry {
  /// One cell, or all where `cell` is nil.
  package func describeCells(_ name: String, cell: String? = nil) throws(Problem) -> JSONObject {
    try contents.withLock { contents throws(Problem) in
      let stream = try cellStream(name, contents)
      if let cell {
        guard let found = stream.cells[cell] else { throw Self.unknownCell(cell) }
        return found.described(as: cell)
      }
      var cells = JSONObject()
      for (name, cell) in stream.cells.sorted(by: { $0.key < $1.key }) {
        cells[name] = .object(cell.described(as: name))
      }
      return ["cells": .object(cells)]
    }
  }

  /// Ends one cell, or all where `cell` is nil.
  package func endCells(
    _ name: String, cell: String? = nil, _ publication: inout Publication
  ) throws(Problem) {
    try contents.withLock { contents throws(Problem) in
      let stream = try cellStream(name, contents)
      if let cell, stream.cells[cell] == nil { throw Self.unknownCell(cell) }
      for name in cell.map({ [$0] }) ?? Array(stream.cells.keys) { end(name, of: stream, &publication) }
    }
  }

  static func unknownCell(_ cell: String) -> Problem {
    Problem(.unknownCell, "the stream has no cell '\(cell)'")
  }

  func cellStream(_ name: String, _ contents: borrowing Contents) throws(Problem) -> CellStream {
    guard let parsed = StreamName(name), let stream = contents.cellStreams[parsed.observer], stream.name == name else {
      throw Problem(.unknownStream, "no stream with cells is open under this name")
    }
    return stream
  }
}
