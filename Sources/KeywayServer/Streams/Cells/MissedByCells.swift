import KeyValueModel
import KeyValueObserving
import Store

/// What the cells of a stream missed after a revision: worked out while others write, and brought to the present under
/// the publication's lock.
struct MissedByCells {
  /// A cell, and what it observes or watches.
  typealias Source = (name: String, binding: CellBinding, observations: [Observation], query: Query?)

  private let after: Revision
  private let sources: [Source]
  private let queries: Set<Query>
  private let services: StreamServices
  /// The objects that the cells were read through a moment ago, all of which were there; nil where some were not.
  private let objects: Set<Reference>?
  /// The live queries, where they have been evaluated.
  private(set) var prepared: [Query: PreparedQuery] = [:]
  private var replay: CellReplay
  /// Whether anything has become of the objects, and of which queries, since the revision.
  private var touchedObjects = false
  private var touchedQueries: Set<Query> = []
  /// The queries that were watched already when the stream was opened.
  private var watchedQueries: Set<Query> = []
  /// The live queries in the order of the sources, brought to the present.
  private(set) var finished: [PreparedQuery?] = []

  /// Nothing is known yet of what these cells missed, which are in `cells` as they were at the revision.
  init(
    _ sources: [Source], _ cells: CellSet, after revision: Revision, _ snapshot: Snapshot, _ services: StreamServices,
    through gates: [String: CellGate] = [:], formers: [CellReplay.Former] = [],
    refreshes: [CellReplay.Refresh] = []
  ) {
    after = revision
    self.sources = sources
    self.services = services
    queries = Set(sources.compactMap(\.query))
    objects = formers.isEmpty ? sources.flatMap(\.observations).objects(in: snapshot.state) : nil
    replay = CellReplay(cells, services, through: gates, formers: formers, refreshes: refreshes)
  }

  /// The cells after what they missed.
  var cells: CellSet { replay.cells }

  /// What they missed, encoded.
  var text: EventText { replay.text }

  /// True if that would be too much to send.
  var hasOverflowed: Bool { replay.hasOverflowed }

  /// The last revision that they are told of.
  var lastTold: Revision { replay.lastTold }

  /// Whether so little is left to be worked out that it can be done under the lock.
  mutating func isReady(_ publication: borrowing Publication) -> Bool {
    touchedObjects = !(objects.map { publication.isUntouched($0, after: after) } ?? false)
    touchedQueries = queries.filter { !publication.queries.isUntouched($0, since: after) }
    if after < publication.snapshot.oldestResumable { return true }
    if replay.wantsRefreshes { return false }
    if touchedObjects {
      guard let known = replay.objects, publication.isNear(known.revision) else { return false }
    }
    for query in touchedQueries {
      guard let known = prepared[query], publication.isNear(known.revision) else { return false }
    }
    return true
  }

  /// Works out what was missed, up to what was published a moment ago. Runs without a lock.
  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    try Problem.translating(try store.prepare(touchedQueries, after: after, history, &prepared, isAbandoned))
    let limits = store.limits
    try replay.evaluateRefreshes(history, limits, services)
    if touchedObjects {
      if replay.objects == nil, let missed = store.missed(after: after, history) {
        replay.begin(observed, missed, history, limits: limits)
      }
      if let known = replay.objects {
        replay.bringUp(
          through: history.commits(after: known.revision), to: history.snapshot,
          limits: limits)
      }
    }
    encode(sources.map { $0.query.flatMap { prepared[$0]?.contents } ?? [] }, upTo: history.snapshot.revision)
  }

  /// Keeps what was worked out for the next stream that resumes alike.
  func keepResults(in store: Store) {
    store.giveBack(prepared.filter { watchedQueries.contains($0.key) }, after: after)
  }

  /// What cells observe of objects, as `Replay` takes it.
  private var observed: [(name: String?, observations: [Observation])] {
    sources.filter { !$0.observations.isEmpty }.map { ($0.name, $0.observations) }
  }

  private mutating func encode(_ contents: [[QueryContent]], upTo revision: Revision) {
    let sources = zip(sources, contents).map { ($0.name, $0.binding, $1) }
    replay.encode(sources, upTo: revision, services.encoder)
  }

  // MARK: Under the lock

  /// Brings the queries to the present that were evaluated.
  mutating func bringUpQueries(_ publication: borrowing Publication) {
    watchedQueries = queries.filter { publication.queries.result(of: $0) != nil }
    for query in Array(prepared.keys) { publication.bringUp(&prepared, query) }
  }

  /// Brings what the cells missed to the present; gives why they cannot be sent that, where it is so.
  mutating func finish(_ publication: borrowing Publication) throws(Problem) -> Resumption.Reset? {
    try replay.evaluateRefreshes(publication.publishedHistory, publication.limits, services)
    let isUntouched = objects.map { publication.isUntouched($0, after: after) } ?? false
    if !isUntouched, !bringUp(publication) { return .compacted }
    if replay.wantsRefreshes { return .compacted }
    finished = []
    for source in sources {
      guard let query = source.query else {
        finished.append(nil)
        continue
      }
      let replayed = try Problem.translating(try publication.replay(query, prepared[query], after: after))
      guard let replayed else { return .compacted }
      finished.append(replayed)
    }
    encode(finished.map { $0?.contents ?? [] }, upTo: publication.snapshot.revision)
    return replay.hasOverflowed ? .overflow : nil
  }

  /// Brings what was missed of objects to the present; false where it is not known, or an object did not exist then.
  private mutating func bringUp(_ publication: borrowing Publication) -> Bool {
    let snapshot = publication.snapshot
    let limits = publication.limits
    if let known = replay.objects {
      replay.bringUp(
        through: publication.history.commits(after: known.revision, present: snapshot.revision), to: snapshot,
        limits: limits)
    } else if let missed = MissedCommits(after: after, publication.publishedHistory) {
      replay.begin(observed, missed, publication.publishedHistory, limits: limits)
    }
    return replay.objects.map { $0.revision == snapshot.revision && replay.absent.isEmpty } ?? false
  }
}
