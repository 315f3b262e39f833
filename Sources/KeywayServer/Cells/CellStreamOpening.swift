import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// The opening of a stream with cells, a new one or one that was cut. If its cursor can be resumed, the cells on screen
/// receive what they missed; otherwise all cells receive the present state.
struct CellStreamOpening: StreamOpening {
  private typealias BoundCell = (name: String, binding: CellBinding, target: CellTarget)

  /// The request of a client for a stream.
  struct Request {
    let cursor: String?
    let overflow: OverflowPolicy
    let client: ClientAddress
    /// The viewer whose read rules apply, or nil if none do.
    let viewer: Viewer?
  }

  private let bindings: [(name: String, binding: CellBinding)]
  private let request: Request
  private let services: StreamServices
  /// The stream to resume; nil for a new one.
  private let cut: CutCells?
  /// The live queries of cells that have been evaluated.
  private var prepared: [Query: PreparedQuery] = [:]
  /// The changes that a resumed stream has missed; nil if the stream begins with the present state.
  private var missed: MissedByCells?
  /// The values that the stream begins with, if it begins with the present state.
  private var values: ObservedValues
  /// The collections that the cells read through.
  private var following = CollectionFollowing()
  /// True if these are the values of the present.
  private var isCurrent = false
  /// True if the missed events would be too much to send.
  private var hasOverflowed = false

  /// Opens a new stream, or resumes one that was `cut`. Throws the problem of an invalid binding, and
  /// `malformed-filter` for filters that cost too much.
  init(
    _ bindings: [(name: String, binding: CellBinding)], resuming cut: CutCells? = nil, _ request: Request,
    in store: Store, _ services: StreamServices, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    self.bindings = bindings
    self.cut = cut
    self.request = request
    self.services = services
    values = ObservedValues(steps: store.limits.queryOpeningCost)
    let snapshot = store.snapshot
    do throws(Problem) {
      try follow(snapshot, in: store)
      guard let after = resumption(snapshot).revision else {
        let queries = try services.queries(of: bindings, store.schema)
        prepared = try Problem.translating(try store.prepare(queries, isAbandoned))
        try evaluate(snapshot)
        return
      }
      missed = try missed(after: after, snapshot)
    } catch {
      following.end(in: store)
      throw error
    }
  }

  /// Returns the point at which the stream begins.
  private func resumption(_ snapshot: Snapshot) -> Resumption {
    let resumption = services.resumption(from: request.cursor, snapshot)
    guard let cut, let after = resumption.revision else { return resumption }
    return after < cut.openedAt ? .reset(.compacted) : resumption
  }

  /// Returns true if cells receive the present state even if they did not ask for it: their client has seen an earlier
  /// one, and does not continue from there.
  private func isForced(_ resumption: Resumption) -> Bool {
    switch resumption {
    case .fresh: cut != nil
    case .reset: true
    case .after: false
    }
  }

  private func missed(after revision: Revision, _ snapshot: Snapshot) throws(Problem) -> MissedByCells {
    if let cut { return cut.missed(after: revision, snapshot, services) }
    var sources: [MissedByCells.Source] = []
    for (name, binding) in bindings {
      let query = try services.query(of: binding, snapshot.state.schema)
      let observations = try services.observations(of: binding, snapshot.state, mayBeGone: true)
      sources.append((name, binding, observations, query))
    }
    return MissedByCells(sources, Self.cellSet(sources, snapshot), after: revision, snapshot, services)
  }

  /// True if the stream begins with the present state.
  private func beginsWithState(_ snapshot: Snapshot) -> Bool {
    hasOverflowed || resumption(snapshot).revision == nil
  }

  mutating func isReady(_ publication: borrowing Publication) -> Bool {
    let snapshot = publication.snapshot
    guard beginsWithState(snapshot) else { return missed?.isReady(publication) ?? true }
    let commits = publication.publishedHistory.commits(after: values.revision ?? 0)
    isCurrent = values.bringUp(through: commits, to: snapshot.revision)
    return isCurrent
  }

  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    guard !beginsWithState(history.snapshot) else { return try evaluate(history.snapshot) }
    try missed?.prepare(upTo: history, in: store, isAbandoned)
    hasOverflowed = missed?.hasOverflowed ?? false
  }

  /// Follows the collections that the cells read through.
  private mutating func follow(_ snapshot: Snapshot, in store: Store) throws(Problem) {
    var observations: [Observation] = []
    for (_, binding) in bindings {
      observations += try services.observations(of: binding, snapshot.state, mayBeGone: true)
    }
    try Problem.translating(try following.follow(observations, in: store))
  }

  /// Computes what the cells begin with. Throws `too-many-steps` if that takes more steps than a request may take.
  private mutating func evaluate(_ snapshot: Snapshot) throws(Problem) {
    let isForced = isForced(hasOverflowed ? .reset(.overflow) : resumption(snapshot))
    var wanted: [Observation] = []
    for (_, binding) in bindings {
      let isTold = binding.isVisible && (isForced || binding.options.contains(.initial))
      guard isTold || (!binding.isVisible && binding.options.contains(.old)) else { continue }
      wanted += try services.observations(of: binding, snapshot.state, mayBeGone: true)
    }
    try Problem.translating(try values.evaluate(wanted, in: snapshot.state, at: snapshot.revision))
  }

  func keepResults(in store: Store) {
    missed?.keepResults(in: store)
    following.end(in: store)
  }

  /// Returns the cells as they are before they receive anything.
  private static func cellSet(_ sources: [MissedByCells.Source], _ snapshot: Snapshot) -> CellSet {
    var set = CellSet()
    for (name, binding, observations, query) in sources {
      var cell = Cell(binding: binding, observations: observations, query: query)
      if !binding.isVisible {
        // The cell is owed everything: it is not known which rows its client has, if any.
        cell.pause(at: DeliveredState(reader: snapshot.state, revision: snapshot.revision) { _ in nil })
      }
      set[name] = cell
    }
    return set
  }

  // MARK: Under the lock

  mutating func open(in registry: StreamRegistry, _ publication: inout Publication) throws(Problem) -> EventStream {
    missed?.bringUpQueries(publication)
    for query in Array(prepared.keys) { publication.bringUp(&prepared, query) }
    return try registry.contents.withLock { contents throws(Problem) in
      guard let cut else { return try open(nil, &contents, &publication) }
      guard let entry = contents.cut.take(cut.name, cut.number, at: services.now()) else {
        throw StreamRegistry.unknownStream
      }
      do throws(Problem) {
        return try open(entry.stream, &contents, &publication)
      } catch {
        entry.stream.reserveCut()
        contents.cut.putBack(entry)
        throw error
      }
    }
  }

  private mutating func open(
    _ former: CellStream?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    let beginning = try beginning(publication)
    let client = former?.client ?? request.client
    let targets = beginning.cells.map(\.target)
    return try services.holding(targets, for: client, &publication) { publication throws(Problem) in
      let observer = contents.makeObserver()
      let id = services.hub.reserveID()
      let stream =
        former
        ?? CellStream(
          id: id, client: client, observer: observer, openedAt: publication.snapshot.revision,
          services: services)
      let place = stream.place
      let kept = beginning.cellSet.pendingBytes + beginning.cellSet.formerBytes
      try stream.reserve(beginning.cells.reduce(kept) { $0 + $1.weight })
      stream.move(to: CellStream.Place(id: id, observer: observer, viewer: request.viewer, cells: beginning.cellSet))
      publication.queries.charge(stream.observer, to: QueryPayer(stream.client))
      publication.observers.charge(stream.observer, to: QueryPayer(stream.client))
      let prelude = begin(stream, beginning, &publication)
      let isOwed = stream.cells.isSuspended
      do throws(Problem) {
        let opened = try services.open(
          id, for: request.client, prelude: prelude, channel: nil, overflow: request.overflow)
        contents.receivers[observer] = stream
        contents.subscriptions[id] = stream
        if stream.name != id { contents.connections[stream.name] = id }
        if isOwed {
          services.hub.post([stream.miss(.state(at: publication.snapshot.revision))], position: nil)
        }
        return opened
      } catch {
        stream.unregister(&publication)
        stream.move(to: place)
        throw error
      }
    }
  }

  /// A cell, and what it shows from now on.
  private struct BeginningCell {
    let name: String
    let binding: CellBinding
    var target: CellTarget

    var weight: Int { binding.weight(showing: target) }
  }

  /// The beginning of a stream, computed before anything is registered.
  private struct Beginning {
    var cells: [BeginningCell] = []
    /// The cells as they are after `missed`.
    var cellSet = CellSet()
    /// The encoded events that the cells of a resumed stream missed.
    var missed: EventBuffer?
    /// True if the cells receive their state later, as those of a slow reader do.
    var isOwed = false
    /// The point at which the stream resumes, or the reason why it does not although a cursor was given.
    var resumption: Resumption
  }

  private mutating func beginning(_ publication: borrowing Publication) throws(Problem) -> Beginning {
    var beginning = Beginning(resumption: resumption(publication.snapshot))
    if beginning.resumption.revision != nil, hasOverflowed { beginning.resumption = .reset(.overflow) }
    if let revision = beginning.resumption.revision {
      if missed == nil { missed = try missed(after: revision, publication.snapshot) }
      beginning.cells = try targets(publication, mayBeGone: true)
      guard let reason = try missed?.finish(publication) else {
        for (index, finished) in (missed?.finished ?? []).enumerated() {
          beginning.cells[index].target.finished = finished
        }
        beginning.cellSet = missed?.cells ?? CellSet()
        beginning.missed = missed?.text
        return beginning
      }
      beginning.resumption = .reset(reason)
    }
    // From here on, the objects have to exist.
    beginning.cells = try targets(publication, mayBeGone: false)
    beginning.cellSet = Self.cellSet(
      beginning.cells.map { ($0.name, $0.binding, $0.target.observations, $0.target.query) }, publication.snapshot)
    for cell in beginning.cells { beginning.cellSet[cell.name]?.told = cut?.cells[cell.name]?.told ?? 0 }
    beginning.isOwed = !isCurrent
    if isCurrent {
      try evaluate(&beginning.cells, isForced: isForced(beginning.resumption), in: publication.snapshot.state)
    }
    return beginning
  }

  /// Computes the first values of cells on screen. Throws `too-many-bytes` as soon as they exceed the limit of an
  /// event: then not even the observations have been registered, which is what takes long.
  private func evaluate(
    _ cells: inout [BeginningCell], isForced: Bool, in state: borrowing ModelState
  ) throws(Problem) {
    let reader = values.reader(of: copy state)
    var update = CellUpdate(limit: services.limits.eventBytes)
    for (index, cell) in cells.enumerated() where cell.binding.isVisible && cell.target.query == nil {
      guard isForced || cell.binding.options.contains(.initial) else { continue }
      let first = update.initial.count
      update.addInitial(cell.target.observations, of: cell.name, in: reader)
      if update.isTooLong { throw services.tooLongBeginning }
      cells[index].target.initial = Array(update.initial[first...])
    }
  }

  /// Resolves the bindings. An object that existed at the cursor may be gone by now: its cell receives `gone`. So does
  /// a cell of a stream that was cut, whatever the cursor.
  private func targets(
    _ publication: borrowing Publication, mayBeGone: Bool
  ) throws(Problem) -> [BeginningCell] {
    var cells: [BeginningCell] = []
    let prepared = missed?.prepared ?? self.prepared
    for (name, binding) in bindings {
      let target = try services.target(
        of: binding, prepared, for: cut?.client ?? request.client, publication, mayBeGone: mayBeGone,
        toleratesMissing: cut != nil)
      cells.append(BeginningCell(name: name, binding: binding, target: target))
    }
    return cells
  }

  /// Registers the cells, and returns the text that the stream begins with.
  private func begin(_ stream: CellStream, _ beginning: Beginning, _ publication: inout Publication) -> EventBuffer {
    let present = publication.snapshot.revision
    var prelude = services.prelude()
    services.encoder.appendOpen(
      services.names.text(of: stream.name), revision: present, heartbeatSeconds: services.limits.heartbeatSeconds,
      to: &prelude)
    if case .reset(let reason) = beginning.resumption {
      services.encoder.appendReset(reason, revision: present, to: &prelude)
    }
    if let missed = beginning.missed { prelude.append(missed) }
    if beginning.isOwed { stream.cells.suspendOwingState() }
    stream.values = isCurrent ? values : nil
    defer { stream.values = nil }
    var update = stream.makeUpdate()
    let resumes = beginning.resumption.revision != nil
    for cell in beginning.cells {
      guard let present = stream.cells[cell.name] else { continue }
      if cut != nil, resumes {
        stream.registerAgain(cell.name, cell.target, &publication)
      } else if cell.target.missing != nil || (!resumes && cut?.cells[cell.name]?.lost != nil) {
        stream.lose(cell.name, cell.target.missing ?? cut?.cells[cell.name]?.lost?.object, publication, &update)
      } else if present.binding.object != nil || present.query != nil {
        stream.register(
          cell.name, cell.target, sendsInitial: !resumes, isForced: isForced(beginning.resumption), &publication,
          &update)
      }
    }
    let text = stream.cells.encode(update, at: present, services.encoder, isFirstOfID: true)
    prelude.append(text)
    stream.noteTold(text.isEmpty ? missed?.lastTold ?? 0 : present)
    return prelude
  }
}
