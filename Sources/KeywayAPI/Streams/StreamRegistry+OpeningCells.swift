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
    /// The cells as they are after what they missed, and that, encoded; nil where they are told no such thing.
    var replayed: (cells: [String: Cell], bytes: [UInt8])?

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
    var resumed = ResumedCells()
    resumed.prepared = prepared
    return try openCells(try parse(bindings), cursor: cursor, overflow: overflow, &resumed, &publication)
  }

  /// The same, with what was worked out before for a client that comes back.
  func openCells(
    _ parsed: [(String, CellBinding)], cursor: String?, overflow: OverflowPolicy, _ resumed: inout ResumedCells,
    _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    for query in resumed.prepared.keys { publication.bringUp(&resumed.prepared, query) }
    return try contents.withLock { contents throws(Problem) in
      let beginning = try beginning(of: parsed, cursor: cursor, &resumed, publication)
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
    of parsed: [(String, CellBinding)], cursor: String?, _ resumed: inout ResumedCells,
    _ publication: borrowing Publication
  ) throws(Problem) -> Beginning {
    var beginning = Beginning(
      resumption: Resumption(
        cursor: cursor, epoch: encoder.epoch, oldest: publication.snapshot.oldestResumable,
        present: publication.snapshot.revision))
    for (name, binding) in parsed {
      // An object that was there at the cursor may be gone by now: its cell is told so.
      let mayBeGone = !beginning.tellsPresent
      beginning.cells.append(
        (name, binding, try target(of: binding, resumed.prepared, publication, mayBeGone: mayBeGone)))
    }
    guard case .after(let revision) = beginning.resumption else { return beginning }
    if let reset = try replay(after: revision, &resumed, into: &beginning, publication) {
      beginning.resumption = .reset(reset)
      for cell in beginning.cells { _ = try target(of: cell.binding, resumed.prepared, publication) }
    } else {
      beginning.replayed = (resumed.cells, resumed.bytes)
    }
    return beginning
  }

  /// What the cells were told after a revision; gives why they cannot be told, where that is so.
  private func replay(
    after revision: Revision, _ resumed: inout ResumedCells, into beginning: inout Beginning,
    _ publication: borrowing Publication
  ) throws(Problem) -> Resumption.Reset? {
    let snapshot = publication.snapshot
    if resumed.cells.isEmpty { resumed.cells = cells(beginning.cells, snapshot) }
    let isUntouched = resumed.objects.map { publication.isUntouched($0, after: revision) } ?? false
    if !isUntouched, !bringUp(&resumed, beginning, after: revision, publication) { return .compacted }
    for index in beginning.cells.indices {
      guard let query = beginning.cells[index].target.query else { continue }
      let replayed = try Problem.translating { () throws(ModelError) in
        try publication.replay(query, resumed.prepared[query], after: revision)
      }
      guard let replayed else { return .compacted }
      beginning.cells[index].target.finished = replayed
    }
    let sources = beginning.cells.map { ($0.name, $0.binding, $0.target.finished?.contents ?? []) }
    resumed.encode(sources, upTo: snapshot.revision, encoder, byteLimit: limits.replayBytes)
    return resumed.hasOverflowed || resumed.byteCount > limits.replayBytes ? .overflow : nil
  }

  /// Brings what was missed of objects to the present; false where it is not known, or an object did not exist then.
  private func bringUp(
    _ resumed: inout ResumedCells, _ beginning: Beginning, after revision: Revision,
    _ publication: borrowing Publication
  ) -> Bool {
    let snapshot = publication.snapshot
    let changesPerObserver = publication.limits.changesPerObserver
    if let known = resumed.replay {
      resumed.bringUp(
        through: publication.history.commits(after: known.revision, present: snapshot.revision), to: snapshot,
        changesPerObserver: changesPerObserver)
    } else if let missed = MissedCommits(after: revision, publication.publishedHistory) {
      resumed.begin(
        observed(beginning.cells.map { ($0.name, $0.target) }), missed, changesPerObserver: changesPerObserver)
    }
    return resumed.replay.map { $0.revision == snapshot.revision && $0.absent.isEmpty } ?? false
  }

  /// What cells observe of objects, as `Replay` takes it.
  func observed(_ cells: [(name: String, target: CellTarget)]) -> [(name: String?, observations: [Observation])] {
    cells.filter { !$0.target.observations.isEmpty }.map { ($0.name, $0.target.observations) }
  }

  /// The cells before they are told anything.
  func cells(
    _ cells: [(name: String, binding: CellBinding, target: CellTarget)], _ snapshot: Snapshot
  ) -> [String: Cell] {
    var entries: [String: Cell] = [:]
    for cell in cells {
      var entry = Cell(binding: cell.binding, observations: cell.target.observations, query: cell.target.query)
      if !cell.binding.isVisible {
        // It is owed everything: nobody knows which rows its client has, if any.
        entry.pause(at: Moment(reader: snapshot.state, revision: snapshot.revision) { _ in nil })
      }
      entries[cell.name] = entry
    }
    return entries
  }

  /// Registers the cells and gives the bytes that the stream begins with.
  private func begin(
    _ stream: CellStream, _ beginning: Beginning, _ publication: inout Publication
  ) -> [UInt8] {
    let present = publication.snapshot.revision
    stream.cells = beginning.replayed?.cells ?? cells(beginning.cells, publication.snapshot)
    var prelude = opening(stream, present)
    if case .reset(let reason) = beginning.resumption {
      encoder.appendReset(reason, revision: present, to: &prelude)
    }
    prelude += beginning.replayed?.bytes ?? []
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
      publication.watch(query, QueryObserver(id: stream.observer, cell: name), target.finished)
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
