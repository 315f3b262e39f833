package import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Opening streams with cells.
extension StreamRegistry {
  /// What a stream with cells begins with, worked out before anything is registered.
  private struct Beginning {
    var cells: [(name: String, binding: CellBinding, target: CellTarget)] = []
    var resumption: Resumption
    var replayed: [StreamEvent] = []

    /// Whether the cells are told the present state, rather than what they missed.
    var tellsPresent: Bool { if case .after = resumption { false } else { true } }
    /// Whether they are told it although they did not ask for it.
    var isReset: Bool { if case .reset = resumption { true } else { false } }
  }

  /// Opens a stream with these cells. Where `cursor` can be resumed, the cells on screen are told what they missed;
  /// otherwise all are told the present state. Throws what is wrong with a binding before anything is registered.
  package func openCells(
    _ bindings: [String: Value], cursor: String?, overflow: OverflowPolicy, prepared: [Query: PreparedQuery],
    _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    try contents.withLock { contents throws(Problem) in
      let beginning = try beginning(of: try parse(bindings), cursor: cursor, prepared, publication)
      try hold(beginning.cells.map(\.target), &publication)
      defer { publication.queries.remove(Self.holder) }
      let observer = contents.makeObserver()
      let name = StreamName(observer: observer, secret: (random(), random())).text
      let stream = CellStream(name: name, observer: observer)
      let prelude = begin(stream, beginning, &publication)
      let opened: EventStream
      do throws(Problem) {
        opened = try openStream(prelude, nil, overflow: overflow)
      } catch {
        publication.observers.remove(observer)
        publication.queries.remove(observer)
        throw error
      }
      stream.id = opened.id
      contents.cellStreams[observer] = stream
      contents.streams[opened.id] = .cells(stream)
      return opened
    }
  }

  private func beginning(
    of parsed: [(String, CellBinding)], cursor: String?, _ prepared: [Query: PreparedQuery],
    _ publication: borrowing Publication
  ) throws(Problem) -> Beginning {
    var beginning = Beginning(
      resumption: Resumption(
        cursor: cursor, epoch: encoder.epoch, oldest: publication.snapshot.oldestResumable,
        present: publication.snapshot.revision))
    for (name, binding) in parsed {
      // An object that was there at the cursor may be gone by now: its cell is told so.
      let mayBeGone = !beginning.tellsPresent
      beginning.cells.append((name, binding, try target(of: binding, prepared, publication, mayBeGone: mayBeGone)))
    }
    guard case .after(let revision) = beginning.resumption else { return beginning }
    if let reset = try replay(after: revision, prepared, into: &beginning, publication) {
      beginning.resumption = .reset(reset)
      beginning.replayed = []
      for cell in beginning.cells { _ = try target(of: cell.binding, prepared, publication) }
    }
    return beginning
  }

  /// What the cells were told after a revision; gives why they cannot be told, where that is so.
  private func replay(
    after revision: Revision, _ prepared: [Query: PreparedQuery], into beginning: inout Beginning,
    _ publication: borrowing Publication
  ) throws(Problem) -> Resumption.Reset? {
    var events: [Revision: StreamEvent] = [:]
    var isOverflown = false
    let cells = beginning.cells.filter { !$0.target.observations.isEmpty }
      .map { (name: Optional($0.name), observations: $0.target.observations) }
    let absent = publication.replay(cells, after: revision) { event in
      isOverflown = isOverflown || event.isOverflown
      events[event.revision] = StreamEvent(event)
    }
    guard absent?.isEmpty == true else { return .compacted }
    for index in beginning.cells.indices {
      guard let query = beginning.cells[index].target.query else { continue }
      let replayed = try Problem.translating { () throws(ModelError) in
        try publication.replay(query, prepared[query], after: revision)
      }
      guard let replayed else { return .compacted }
      beginning.cells[index].target.finished = replayed
      for content in replayed.contents {
        let news = QueryNews(
          cell: beginning.cells[index].name, context: beginning.cells[index].binding.context?.text,
          sort: .content(encoder.encoded(content)))
        events[content.revision, default: StreamEvent(revision: content.revision, writer: content.writer)]
          .queries.append(news)
      }
    }
    beginning.replayed = events.values.sorted { $0.revision < $1.revision }
    var size = 0
    for event in beginning.replayed {
      var bytes: [UInt8] = []
      encoder.append(event, to: &bytes)
      size += bytes.count
      if size > limits.replayBytes { return .overflow }
    }
    if isOverflown { return .overflow }
    return nil
  }

  /// Registers the cells and gives the bytes that the stream begins with.
  private func begin(
    _ stream: CellStream, _ beginning: Beginning, _ publication: inout Publication
  ) -> [UInt8] {
    let present = publication.snapshot.revision
    for cell in beginning.cells {
      var entry = Cell(binding: cell.binding, observations: cell.target.observations, query: cell.target.query)
      if !cell.binding.isVisible {
        // It is owed everything: nobody knows which rows its client has, if any.
        entry.pause(at: Moment(reader: publication.snapshot.state, revision: present) { _ in nil })
      }
      stream.cells[cell.name] = entry
    }
    var prelude = opening(stream, present)
    if case .reset(let reason) = beginning.resumption {
      encoder.appendReset(reason, revision: present, to: &prelude)
    }
    for event in beginning.replayed {
      if let told = stream.sift(event) { encoder.append(told, to: &prelude) }
    }
    var news = CellNews()
    for cell in beginning.cells {
      guard let entry = stream.cells[cell.name], entry.binding.object != nil || entry.query != nil else { continue }
      register(
        cell.name, cell.target, of: stream, tellsInitial: beginning.tellsPresent, isForced: beginning.isReset,
        &publication, &news)
    }
    prelude += encoded(news, of: stream, present)
    return prelude
  }

  private func opening(_ stream: CellStream, _ revision: Revision) -> [UInt8] {
    var bytes = Array(retryLine.utf8)
    encoder.append("open", id: nil, to: &bytes) { bytes in
      let data: JSONObject = [
        "stream": .string(stream.name), "revision": .integer(Int64(revision)),
        "heartbeat": .integer(Int64(limits.heartbeatSeconds)),
      ]
      data.appendJSON(to: &bytes)
    }
    return bytes
  }

  func parse(_ bindings: [String: Value]) throws(Problem) -> [(String, CellBinding)] {
    guard bindings.count <= limits.cells else {
      throw Problem(.tooManyCells, "\(bindings.count) cells; a stream has at most \(limits.cells)")
    }
    var parsed: [(String, CellBinding)] = []
    for (name, body) in bindings.sorted(by: { $0.key < $1.key }) {
      try Self.check(cellName: name)
      parsed.append((name, try CellBinding(body)))
    }
    return parsed
  }

  private static func check(cellName name: String) throws(Problem) {
    guard Reference(entity: "cell", id: name) != nil else {
      throw Problem(.invalidValue, "a cell's name is 1 to 128 letters, digits and . _ ~ -, and '\(name)' is not")
    }
  }

  /// The observations of a binding; with `mayBeGone` its object need not be there any more.
  func observations(
    _ binding: CellBinding, _ state: ModelState, mayBeGone: Bool = false
  ) throws(Problem) -> [Observation] {
    guard let object = binding.object else { return [] }
    if !mayBeGone { try Problem.translating { () throws(ModelError) in _ = try state.requireRecord(object) } }
    return try observations(
      object, binding.keyPaths, options: binding.options, context: binding.context, state.schema)
  }

  /// Begins what a cell observes or watches, and adds its first state to the news, if it is told that now.
  func register(
    _ name: String, _ target: CellTarget, of stream: CellStream, tellsInitial: Bool, isForced: Bool = false,
    _ publication: inout Publication, _ news: inout CellNews
  ) {
    guard var cell = stream.cells[name] else { return }
    defer { stream.cells[name] = cell }
    cell.observations = target.observations
    publication.observers.add(target.observations, of: stream.observer, cell: name, in: publication.snapshot.state)
    cell.query = target.query
    cell.refreshedAt = publication.snapshot.revision
    if let query = target.query {
      publication.watch(query, QueryWatcher(observer: stream.observer, cell: name), target.finished)
    }
    let showsSomething = !target.observations.isEmpty || target.query != nil
    let wantsInitial = isForced || target.query != nil || cell.binding.options.contains(.initial)
    guard cell.binding.isVisible, !stream.isSuspended else {
      // Of a stream that goes on somewhere, nobody knows since when the client has not looked at this cell.
      cell.isOwedInitial = showsSomething && (tellsInitial ? wantsInitial : true)
      cell.pause(at: Moment(present: publication))
      return
    }
    guard tellsInitial, wantsInitial else { return }
    let state = publication.snapshot.state
    news.initial += target.observations.map { $0.initialChange(cell: name, in: state) }
    if let query = target.query, let result = publication.queries.result(of: query) {
      news.queries.append(
        QueryNews(cell: name, context: cell.binding.context?.text, sort: .results(result, state, isInitial: true)))
    }
  }
}
