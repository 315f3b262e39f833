package import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Streams that go on where earlier ones ended. What was missed is worked out and encoded while others write, and shared
/// by those who come back alike; under the publication's lock it is only brought up through the few commits since.
extension StreamRegistry {
  /// What an attempt to open a stream under the publication's lock came to.
  enum Attempt: Sendable {
    /// The stream.
    case opened(EventStream)
    /// Too much has been written: more is to be worked out without the lock first, up to here.
    case postponed(PublishedHistory)
  }

  /// So many attempts are made; the last takes the lock for as long as it needs.
  static let attempts = 4
  /// Through so many commits a stream is brought up under the lock, where that is not the last attempt.
  static let commitsUnderLock: Revision = 16
  /// How many revisions old what is kept for those who resume may become.
  private static let replayAge: Revision = 1000

  /// Tries to open a stream until it is; `attempt` runs under the publication's lock, `prepare` between two attempts.
  func open(
    in store: Store, _ attempt: (_ publication: inout Publication, _ isLast: Bool) throws(Problem) -> Attempt,
    prepare: (PublishedHistory) throws(Problem) -> Void
  ) throws(Problem) -> EventStream {
    var number = 1
    while true {
      let isLast = number >= Self.attempts
      let outcome = try store.withPublication { publication throws(Problem) in try attempt(&publication, isLast) }
      switch outcome {
      case .opened(let stream): return stream
      case .postponed(let publishedHistory): try prepare(publishedHistory)
      }
      number += 1
    }
  }

  /// Whether what was worked out up to a revision is brought to the present with little effort, or cannot be any more.
  static func isNear(_ revision: Revision, _ publication: borrowing Publication) -> Bool {
    publication.snapshot.revision - revision <= commitsUnderLock || revision < publication.snapshot.oldestResumable
  }

  // MARK: One object

  /// Opens a stream of one object. Throws as `open(_:_:)` does.
  package func open(_ request: TopicRequest, in store: Store) throws(Problem) -> EventStream {
    let snapshot = store.snapshot
    guard let after = resumedRevision(request.cursor, snapshot) else {
      return try store.withPublication { publication throws(Problem) in try open(request, &publication) }
    }
    let observations = try observations(request, store.schema)
    let key = TopicReplay.Key(topic: Topic.Key(request, observations), after: after)
    let changesPerObserver = store.limits.changesPerObserver
    var resumed = ResumedTopic()
    resumed.objects = objects(read: observations, snapshot.state)
    defer { if let replay = resumed.replay { keep(replay, for: key) } }
    return try open(in: store) { publication, isLast throws(Problem) in
      guard isLast || canOpen(after, resumed, publication) else { return .postponed(publication.publishedHistory) }
      return .opened(try open(request, &resumed, &publication))
    } prepare: { publishedHistory in
      if resumed.replay == nil { resumed.replay = replays.withLock { $0.take(key) } }
      // One that cannot be brought up any more is of no use.
      if let known = resumed.replay?.revision, known < publishedHistory.snapshot.oldestResumable {
        resumed.replay = nil
      }
      if resumed.replay == nil, let missed = store.missed(after: after, publishedHistory) {
        resumed.replay = TopicReplay(
          observations, missed, encoder, changesPerObserver: changesPerObserver, byteLimit: limits.replayBytes)
      }
      if let known = resumed.replay {
        resumed.replay?.bringUp(
          through: publishedHistory.commits(after: known.revision), to: publishedHistory.snapshot,
          changesPerObserver: changesPerObserver)
      }
    }
  }

  private func canOpen(_ after: Revision, _ resumed: ResumedTopic, _ publication: borrowing Publication) -> Bool {
    if after < publication.snapshot.oldestResumable { return true }
    if let objects = resumed.objects, publication.isUntouched(objects, after: after) { return true }
    return resumed.replay.map { Self.isNear($0.revision, publication) } ?? false
  }

  /// The objects that values are read through, nil where one is not there.
  func objects(read observations: [Observation], _ state: ModelState) -> Set<Reference>? {
    var objects: Set<Reference> = []
    for observation in observations { objects.formUnion(observation.objects(in: state)) }
    return objects.allSatisfy { state.record($0) != nil } ? objects : nil
  }

  private func keep(_ replay: TopicReplay, for key: TopicReplay.Key) {
    replays.withLock { $0.put(replay, for: key, at: replay.revision, weight: replay.weight) }
  }

  /// Keeps nothing any longer that is old by now: it keeps the objects of its time alive.
  func forgetReplays(at present: Revision) {
    guard present > Self.replayAge else { return }
    replays.withLock { $0.forget(before: present - Self.replayAge) }
  }

  // MARK: A live query

  /// Opens a stream of a live query. Throws as `open(_:prepared:encoded:_:)` does.
  package func resume(
    _ request: QueryRequest, after: Revision, in store: Store
  ) throws(Problem) -> EventStream {
    let query = request.query
    var resumed = ResumedQuery()
    var isHandedOver = false
    defer { if !isHandedOver { store.giveBack(resumed.prepared, after: after) } }
    return try open(in: store) { publication, isLast throws(Problem) in
      let canOpen =
        isLast || after < publication.snapshot.oldestResumable || publication.queries.isUntouched(query, since: after)
        || resumed.prepared[query].map { Self.isNear($0.revision, publication) } ?? false
      guard canOpen else { return .postponed(publication.publishedHistory) }
      isHandedOver = publication.queries.result(of: query) == nil
      return .opened(try open(request, &resumed, encoded: nil, &publication))
    } prepare: { publishedHistory throws(Problem) in
      try Problem.translating { () throws(ModelError) in
        try store.prepare([query], after: after, publishedHistory, &resumed.prepared)
      }
      encode(request, &resumed)
    }
  }

  // MARK: Cells

  /// Opens a stream with cells. Throws as `openCells(_:cursor:overflow:prepared:_:)` does.
  package func openCells(
    _ bindings: [String: Value], cursor: String?, overflow: OverflowPolicy, in store: Store
  ) throws(Problem) -> EventStream {
    let queries = try queries(in: bindings, store.schema)
    let snapshot = store.snapshot
    guard let after = resumedRevision(cursor, snapshot) else {
      let prepared = try Problem.translating { () throws(ModelError) in try store.prepare(queries) }
      return try store.withPublication { publication throws(Problem) in
        try openCells(bindings, cursor: cursor, overflow: overflow, prepared: prepared, &publication)
      }
    }
    let parsed = try parse(bindings)
    let cells = try targets(of: parsed, snapshot)
    var resumed = ResumedCells()
    resumed.cells = self.cells(cells, snapshot)
    resumed.objects = objects(read: cells.flatMap(\.target.observations), snapshot.state)
    var touched = Touched()
    var watched: Set<Query> = []
    defer { store.giveBack(resumed.prepared.filter { watched.contains($0.key) }, after: after) }
    return try open(in: store) { publication, isLast throws(Problem) in
      touched = Touched(resumed, queries, after: after, publication)
      guard isLast || touched.canOpen(resumed, after: after, publication) else {
        return .postponed(publication.publishedHistory)
      }
      watched = queries.filter { publication.queries.result(of: $0) != nil }
      return .opened(try openCells(parsed, cursor: cursor, overflow: overflow, &resumed, &publication))
    } prepare: { publishedHistory throws(Problem) in
      try Problem.translating { () throws(ModelError) in
        try store.prepare(touched.queries, after: after, publishedHistory, &resumed.prepared)
      }
      if touched.areObjects { bringUp(&resumed, cells, after: after, publishedHistory, in: store) }
      let sources = cells.map { cell in
        (cell.name, cell.binding, cell.target.query.flatMap { resumed.prepared[$0]?.contents } ?? [])
      }
      resumed.encode(sources, upTo: publishedHistory.snapshot.revision, encoder, byteLimit: limits.replayBytes)
    }
  }

  /// What of the cells of a stream something has become of since the revision that it goes on from.
  private struct Touched {
    var areObjects = false
    var queries: Set<Query> = []

    init() {}

    init(
      _ resumed: ResumedCells, _ queries: Set<Query>, after: Revision, _ publication: borrowing Publication
    ) {
      areObjects = !(resumed.objects.map { publication.isUntouched($0, after: after) } ?? false)
      for query in queries where !publication.queries.isUntouched(query, since: after) { self.queries.insert(query) }
    }

    /// Whether so little is left to be worked out that it can be done under the lock.
    func canOpen(_ resumed: ResumedCells, after: Revision, _ publication: borrowing Publication) -> Bool {
      if after < publication.snapshot.oldestResumable { return true }
      if areObjects {
        guard let replay = resumed.replay, StreamRegistry.isNear(replay.revision, publication) else { return false }
      }
      for query in queries {
        guard let known = resumed.prepared[query], StreamRegistry.isNear(known.revision, publication) else {
          return false
        }
      }
      return true
    }
  }

  private func bringUp(
    _ resumed: inout ResumedCells, _ cells: [(name: String, binding: CellBinding, target: CellTarget)],
    after: Revision, _ publishedHistory: PublishedHistory, in store: Store
  ) {
    let changesPerObserver = store.limits.changesPerObserver
    if resumed.replay == nil, let missed = store.missed(after: after, publishedHistory) {
      resumed.begin(observed(cells.map { ($0.name, $0.target) }), missed, changesPerObserver: changesPerObserver)
    }
    if let replay = resumed.replay {
      resumed.bringUp(
        through: publishedHistory.commits(after: replay.revision), to: publishedHistory.snapshot,
        changesPerObserver: changesPerObserver)
    }
  }

  /// What cells of a stream that goes on observe or watch; their objects need not be there any more.
  private func targets(
    of parsed: [(String, CellBinding)], _ snapshot: Snapshot
  ) throws(Problem) -> [(name: String, binding: CellBinding, target: CellTarget)] {
    var cells: [(name: String, binding: CellBinding, target: CellTarget)] = []
    for (name, binding) in parsed {
      var target = CellTarget(observations: try observations(binding, snapshot.state, mayBeGone: true))
      target.query = try binding.query.map { words throws(Problem) in
        try Problem.translating { () throws(ModelError) in try Query(words, in: snapshot.state.schema) }
      }
      cells.append((name, binding, target))
    }
    return cells
  }
}
