import HTTPServer
import KeyValueModel
import KeyValueObserving
import Locking
import ModelStore

/// The opening of a stream with cells. Where its cursor can be resumed, the cells on screen receive what they missed;
/// otherwise all receive the present state.
struct CellStreamOpening: StreamOpening {
  private typealias BoundCell = (name: String, binding: CellBinding, target: CellTarget)

  private let bindings: [(name: String, binding: CellBinding)]
  private let cursor: String?
  private let overflow: OverflowPolicy
  private let client: ClientAddress
  /// What the client may read; nil for everything.
  private let viewer: Viewer?
  private let services: StreamServices
  private let queries: Set<Query>
  /// The revision to go on from; nil where the stream begins with the present state.
  private let after: Revision?
  /// The live queries of cells, where they have been evaluated.
  private var prepared: [Query: PreparedQuery] = [:]
  /// The cells as their bindings read a moment ago, for a stream that resumes.
  private var cells: [BoundCell] = []
  /// The objects that these were read through, all of which were there; nil where some were not.
  private var objects: Set<Reference>?
  private var replay: CellReplay
  /// Whether anything has become of the objects, and of which queries, since the revision to go on from.
  private var touchedObjects = false
  private var touchedQueries: Set<Query> = []
  /// The queries that were watched already when the stream was opened.
  private var watchedQueries: Set<Query> = []

  /// Throws what is wrong with a binding, and `malformed-filter` for filters that cost too much.
  init(
    _ bindings: [(name: String, binding: CellBinding)], cursor: String?, overflow: OverflowPolicy,
    for client: ClientAddress, _ viewer: Viewer?, in store: Store, _ services: StreamServices,
    _ isAbandoned: () -> Bool
  ) throws(Problem) {
    self.viewer = viewer
    self.bindings = bindings
    self.cursor = cursor
    self.overflow = overflow
    self.client = client
    replay = CellReplay(CellSet(), services)
    self.services = services
    let queries = try services.queries(of: bindings, store.schema)
    self.queries = queries
    let snapshot = store.snapshot
    after = services.resumption(from: cursor, snapshot).revision
    guard after != nil else {
      prepared = try Problem.translating(try store.prepare(queries, isAbandoned))
      return
    }
    for (name, binding) in bindings {
      let query = try services.query(of: binding, snapshot.state.schema)
      let observations = try services.observations(of: binding, snapshot.state, mayBeGone: true)
      cells.append((name, binding, CellTarget(observations: observations, query: query)))
    }
    objects = cells.flatMap(\.target.observations).objects(in: snapshot.state)
    replay = CellReplay(Self.cellSet(cells, snapshot), services)
  }

  mutating func isReady(_ publication: borrowing Publication) -> Bool {
    guard let after else { return true }
    touchedObjects = !(objects.map { publication.isUntouched($0, after: after) } ?? false)
    touchedQueries = queries.filter { !publication.queries.isUntouched($0, since: after) }
    if after < publication.snapshot.oldestResumable { return true }
    if touchedObjects {
      guard let known = replay.objects, publication.isNear(known.revision) else { return false }
    }
    for query in touchedQueries {
      guard let known = prepared[query], publication.isNear(known.revision) else { return false }
    }
    return true
  }

  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    guard let after else { return }
    try Problem.translating(try store.prepare(touchedQueries, after: after, history, &prepared, isAbandoned))
    if touchedObjects {
      let limits = store.limits
      if replay.objects == nil, let missed = store.missed(after: after, history) {
        replay.begin(Self.observed(cells), missed, limits: limits)
      }
      if let known = replay.objects {
        replay.bringUp(
          through: history.commits(after: known.revision), to: history.snapshot,
          limits: limits)
      }
    }
    let sources = cells.map { cell in
      (cell.name, cell.binding, cell.target.query.flatMap { prepared[$0]?.contents } ?? [])
    }
    replay.encode(sources, upTo: history.snapshot.revision, services.encoder)
  }

  func keepResults(in store: Store) {
    guard let after else { return }
    store.giveBack(prepared.filter { watchedQueries.contains($0.key) }, after: after)
  }

  /// What cells observe of objects, as `Replay` takes it.
  private static func observed(_ cells: [BoundCell]) -> [(name: String?, observations: [Observation])] {
    cells.filter { !$0.target.observations.isEmpty }.map { ($0.name, $0.target.observations) }
  }

  /// The cells before they receive anything.
  private static func cellSet(_ cells: [BoundCell], _ snapshot: Snapshot) -> CellSet {
    var set = CellSet()
    for (name, binding, target) in cells {
      var cell = Cell(binding: binding, observations: target.observations, query: target.query)
      if !binding.isVisible {
        // It is owed everything: it is not known which rows its client has, if any.
        cell.pause(at: DeliveredState(reader: snapshot.state, revision: snapshot.revision) { _ in nil })
      }
      set[name] = cell
    }
    return set
  }

  // MARK: Under the lock

  mutating func open(in registry: StreamRegistry, _ publication: inout Publication) throws(Problem) -> EventStream {
    watchedQueries = queries.filter { publication.queries.result(of: $0) != nil }
    for query in Array(prepared.keys) { publication.bringUp(&prepared, query) }
    return try registry.contents.withLock { contents throws(Problem) in
      let beginning = try beginning(publication)
      return try services.holding(beginning.cells.map(\.target), &publication) { publication throws(Problem) in
        let stream = CellStream(
          id: services.hub.reserveID(), client: client, observer: contents.makeObserver(), cells: beginning.cellSet,
          for: viewer, services: services)
        try stream.reserve(beginning.cells.reduce(0) { $0 + $1.binding.weight(showing: $1.target) })
        publication.queries.charge(stream.observer, to: QueryPayer(client))
        let prelude = begin(stream, beginning, &publication)
        do throws(Problem) {
          let opened = try services.open(
            stream.id, for: client, prelude: prelude, channel: nil, overflow: overflow)
          contents.receivers[stream.observer] = stream
          contents.subscriptions[stream.id] = stream
          return opened
        } catch {
          stream.unregister(&publication)
          throw error
        }
      }
    }
  }

  /// What the stream begins with, worked out before anything is registered.
  private struct Beginning {
    var cells: [BoundCell] = []
    /// The cells after `missed`.
    var cellSet = CellSet()
    /// What the cells missed, encoded, of a stream that goes on where it was.
    var missed: EventText?
    /// Whether the stream goes on, and why it does not although a cursor was given.
    var resumption: Resumption
  }

  private mutating func beginning(_ publication: borrowing Publication) throws(Problem) -> Beginning {
    var beginning = Beginning(resumption: services.resumption(from: cursor, publication.snapshot))
    beginning.cells = try targets(publication, mayBeGone: beginning.resumption.revision != nil)
    if let revision = beginning.resumption.revision {
      guard let reason = try replay(after: revision, &beginning.cells, publication) else {
        beginning.cellSet = replay.cells
        beginning.missed = replay.text
        return beginning
      }
      beginning.resumption = .reset(reason)
      // Now its objects have to be there.
      _ = try targets(publication, mayBeGone: false)
    }
    beginning.cellSet = Self.cellSet(beginning.cells, publication.snapshot)
    if beginning.resumption.revision == nil {
      try evaluate(&beginning.cells, isForced: beginning.resumption.isReset, in: publication.snapshot.state)
    }
    return beginning
  }

  /// Works out the first values of cells on screen. Throws `too-many-bytes` as soon as they are too many to be told:
  /// then not even the observations have been registered, which are what takes long.
  private func evaluate(
    _ cells: inout [BoundCell], isForced: Bool, in state: borrowing ModelState
  ) throws(Problem) {
    let reader = copy state
    var update = CellUpdate(limit: services.limits.eventBytes)
    for (index, cell) in cells.enumerated() where cell.binding.isVisible && cell.target.query == nil {
      guard isForced || cell.binding.options.contains(.initial) else { continue }
      let first = update.initial.count
      update.addInitial(cell.target.observations, of: cell.name, in: reader)
      if update.isTooLong { throw services.tooLongBeginning }
      cells[index].target.initial = Array(update.initial[first...])
    }
  }

  /// What the bindings name. An object that was there at the cursor may be gone by now: its cell receives `gone`.
  private func targets(_ publication: borrowing Publication, mayBeGone: Bool) throws(Problem) -> [BoundCell] {
    var cells: [BoundCell] = []
    for (name, binding) in bindings {
      cells.append((name, binding, try services.target(of: binding, prepared, publication, mayBeGone: mayBeGone)))
    }
    return cells
  }

  /// Brings what the cells missed after a revision to the present; gives why they cannot be sent that, where it is so.
  private mutating func replay(
    after revision: Revision, _ cells: inout [BoundCell], _ publication: borrowing Publication
  ) throws(Problem) -> Resumption.Reset? {
    let snapshot = publication.snapshot
    if replay.cells.count == 0 { replay = CellReplay(Self.cellSet(cells, snapshot), services) }
    let isUntouched = objects.map { publication.isUntouched($0, after: revision) } ?? false
    if !isUntouched, !bringUp(cells, after: revision, publication) { return .compacted }
    for (index, cell) in cells.enumerated() {
      guard let query = cell.target.query else { continue }
      let replayed = try Problem.translating(try publication.replay(query, prepared[query], after: revision))
      guard let replayed else { return .compacted }
      cells[index].target.finished = replayed
    }
    let sources = cells.map { ($0.name, $0.binding, $0.target.finished?.contents ?? []) }
    replay.encode(sources, upTo: snapshot.revision, services.encoder)
    return replay.hasOverflowed ? .overflow : nil
  }

  /// Brings what was missed of objects to the present; false where it is not known, or an object did not exist then.
  private mutating func bringUp(
    _ cells: [BoundCell], after revision: Revision, _ publication: borrowing Publication
  ) -> Bool {
    let snapshot = publication.snapshot
    let limits = publication.limits
    if let known = replay.objects {
      replay.bringUp(
        through: publication.history.commits(after: known.revision, present: snapshot.revision), to: snapshot,
        limits: limits)
    } else if let missed = MissedCommits(after: revision, publication.publishedHistory) {
      replay.begin(Self.observed(cells), missed, limits: limits)
    }
    return replay.objects.map { $0.revision == snapshot.revision && $0.absent.isEmpty } ?? false
  }

  /// Registers the cells and gives the text that the stream begins with.
  private func begin(_ stream: CellStream, _ beginning: Beginning, _ publication: inout Publication) -> EventText {
    let present = publication.snapshot.revision
    var prelude = services.prelude()
    services.encoder.appendOpen(
      services.names.text(of: stream.id), revision: present, heartbeatSeconds: services.limits.heartbeatSeconds,
      to: &prelude)
    if case .reset(let reason) = beginning.resumption {
      services.encoder.appendReset(reason, revision: present, to: &prelude)
    }
    if let missed = beginning.missed { prelude.append(missed) }
    var update = stream.makeUpdate()
    for cell in beginning.cells {
      guard let present = stream.cells[cell.name], present.binding.object != nil || present.query != nil else {
        continue
      }
      stream.register(
        cell.name, cell.target, sendsInitial: beginning.resumption.revision == nil,
        isForced: beginning.resumption.isReset, &publication, &update)
    }
    prelude.append(stream.cells.encode(update, at: present, services.encoder))
    return prelude
  }
}
