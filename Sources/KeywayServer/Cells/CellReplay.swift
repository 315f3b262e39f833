import KeyValueModel
import KeyValueObserving
import Store

/// The changes that the cells of a stream missed after a revision: computed while others write, and brought up to date
/// under the publication's lock.
struct MissedByCells {
  /// A cell, with its observations and its live query.
  typealias Source = (name: String, binding: CellBinding, observations: [Observation], query: Query?)

  private let after: Revision
  private let sources: [Source]
  private let queries: Set<Query>
  private let services: StreamServices
  /// The objects that the cells were read through a moment ago, if all of them existed; nil if some did not.
  private let objects: Set<Reference>?
  /// The live queries that have been evaluated.
  private(set) var prepared: [Query: PreparedQuery] = [:]
  private var replay: CellReplay
  /// True if the objects may have changed since the revision; `touchedQueries` are the queries that may have.
  private var touchedObjects = false
  private var touchedQueries: Set<Query> = []
  /// The queries that were watched already when the stream was opened.
  private var watchedQueries: Set<Query> = []
  /// The live queries in the order of the sources, brought up to date.
  private(set) var finished: [PreparedQuery?] = []

  /// Creates an empty result for these cells, which are in `cells` as they were at the revision.
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

  /// The cells as they are after what they missed.
  var cells: CellSet { replay.cells }

  /// The missed events, encoded.
  var text: EventBuffer { replay.text }

  /// True if the missed events are too much to send.
  var hasOverflowed: Bool { replay.hasOverflowed }

  /// The last revision that the cells are told of.
  var lastTold: Revision { replay.lastTold }

  /// Returns true if so little work is left that it can be done under the lock.
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

  /// Computes what was missed, up to the state that was published a moment ago. Runs without a lock.
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

  /// Keeps the results for the next stream that resumes in the same way.
  func keepResults(in store: Store) {
    store.cacheResumedQueries(prepared.filter { watchedQueries.contains($0.key) }, after: after)
  }

  /// The observations of the cells, in the form that `Replay` takes.
  private var observed: [(name: String?, observations: [Observation])] {
    sources.filter { !$0.observations.isEmpty }.map { ($0.name, $0.observations) }
  }

  private mutating func encode(_ contents: [[QueryContent]], upTo revision: Revision) {
    let sources = zip(sources, contents).map { ($0.name, $0.binding, $1) }
    replay.encode(sources, upTo: revision, services.encoder)
  }

  // MARK: Under the lock

  /// Brings the queries that were evaluated up to date.
  mutating func bringUpQueries(_ publication: borrowing Publication) {
    watchedQueries = queries.filter { publication.queries.result(of: $0) != nil }
    for query in Array(prepared.keys) { publication.bringUp(&prepared, query) }
  }

  /// Brings what the cells missed up to date. Returns the reason why they cannot be sent that, or nil if they can.
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

  /// Brings what was missed of objects up to date. Returns false if that is not known, or if an object did not exist
  /// then.
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

/// The changes that the cells of a resuming stream missed, computed and encoded step by step while others write.
struct CellReplay {
  /// A cell, and the changes of its live query after the revision that is resumed from, if it shows one.
  fileprivate typealias Source = (name: String, binding: CellBinding, contents: [QueryContent])

  /// An event of a stream that its client may not have received, which told cells their state at a revision.
  struct Refresh {
    /// A cell, and what it observed or watched.
    typealias Part = (
      name: String, observations: [Observation], query: Query?, gone: Reference?, isFormer: Bool
    )
    let revision: Revision
    let number: Int
    let isFirstOfID: Bool
    var parts: [Part]
  }

  /// A cell, and its observations of an object that it had lost before it was bound to something else; its client has
  /// the changes of that object up to a revision.
  typealias Former = (name: String, observations: [Observation], since: Revision)

  /// The missed changes of objects, up to the revision of the replay.
  fileprivate private(set) var objects: Replay?
  private let formers: [Former]
  /// The cells whose object did not exist at the revision where they begin.
  fileprivate private(set) var absent: [String?] = []
  /// The gates, which decide what of each revision is for which cell.
  private let gates: [String: CellGate]
  /// The events that are to be told again and are not evaluated yet; `refreshTexts` are those that are.
  private var refreshes: [Refresh]
  private var refreshTexts: [(revision: Revision, text: EventBuffer)] = []
  /// The events of the missed changes that are not encoded yet.
  private var gathered: Gathered
  /// The cells as they are after what is encoded; cells off screen remember it.
  fileprivate private(set) var cells: CellSet
  /// The encoded events for the cells on screen, up to `encodedRevision`.
  fileprivate private(set) var text: EventBuffer
  private var encodedRevision: Revision = 0
  /// The last revision that cells are told of.
  fileprivate private(set) var lastTold: Revision = 0
  /// The size of the events in bytes, including those that no cell on screen receives.
  private var byteCount = 0
  private let byteLimit: Int

  /// Creates an empty replay for these cells.
  fileprivate init(
    _ cells: CellSet, _ services: StreamServices, through gates: [String: CellGate] = [:], formers: [Former] = [],
    refreshes: [Refresh] = []
  ) {
    self.cells = cells
    self.formers = formers
    self.gates = gates
    self.refreshes = refreshes
    byteLimit = services.limits.replayBytes
    text = services.encoder.text(limit: byteLimit)
    gathered = Gathered(limit: byteLimit)
  }

  /// True if one commit did more than an event may hold, or all commits together did more than may be sent to the
  /// stream.
  fileprivate var hasOverflowed: Bool { gathered.hasOverflowed || byteCount > byteLimit || text.isTooLong }

  /// Begins with the missed changes of objects: for each cell from the state that its client has, or from where the
  /// cell was bound.
  fileprivate mutating func begin(
    _ cells: [(name: String?, observations: [Observation])], _ missed: MissedCommits, _ history: PublishedHistory,
    limits: StoreLimits
  ) {
    func begin(_ name: String?) -> Revision { name.flatMap { gates[$0]?.beginsAt } ?? 0 }
    var later: [Replay.Later] = formers.map { (since: $0.since, name: $0.name, observations: $0.observations) }
    for cell in cells where begin(cell.name) > missed.after {
      later.append((since: begin(cell.name), name: cell.name, observations: cell.observations))
    }
    // No cell was bound later than what was published before the stream resumed.
    let missed = later.isEmpty ? missed : MissedCommits(after: missed.after, history) ?? missed
    var gathered = self.gathered
    let objects = Replay(
      cells.filter { begin($0.name) <= missed.after }, later: later, missed, limits: limits
    ) { gathered.append($0) }
    self.gathered = gathered
    self.objects = objects
    absent = objects.absent
  }

  /// Continues to the published state, if the commits in between are known.
  fileprivate mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var gathered = self.gathered
    objects?.bringUp(through: commits, to: snapshot.state, limits: limits) { gathered.append($0) }
    self.gathered = gathered
  }

  /// True if events that are to be told again have still to be evaluated.
  fileprivate var wantsRefreshes: Bool { !refreshes.isEmpty }

  /// Evaluates the events that are to be told again, as they were. Events whose past is not known any more stay
  /// unevaluated. Throws if a filter costs too much.
  fileprivate mutating func evaluateRefreshes(
    _ history: PublishedHistory, _ limits: StoreLimits, _ services: StreamServices
  ) throws(Problem) {
    var cost = limits.queryOpeningCost
    for refresh in refreshes.sorted(by: { ($0.revision, $0.number) < ($1.revision, $1.number) }) {
      guard let past = MissedCommits(after: refresh.revision, history)?.past else { return }
      var update = CellUpdate(limit: services.limits.eventBytes)
      var values = ObservedValues(steps: limits.queryOpeningCost)
      do throws(ModelError) {
        try values.evaluate(refresh.parts.flatMap(\.observations), in: past, at: refresh.revision)
      } catch {
        byteCount = .max
        return
      }
      for part in refresh.parts {
        let context = cells[part.name]?.binding.context?.text
        if let gone = part.gone { update.add(ObserverEvent.Gone(cell: part.name, object: gone, context: context)) }
        update.addInitial(part.observations, of: part.name, in: values.reader(of: past))
        guard let query = part.query else { continue }
        let live = try Problem.translating { () throws(ModelError) in try LiveQuery(query, in: past, cost: &cost) }
        update.add(
          QueryNotification(
            cell: part.name, context: context, body: .results(live.result, past, isInitial: true)))
      }
      let former = refresh.parts.filter(\.isFormer).map { (name: $0.name, refresh: cells[$0.name]?.refresh) }
      let text = cells.encode(
        update, at: refresh.revision, services.encoder, isFirstOfID: refresh.isFirstOfID)
      // It was not an event of what these cells show now.
      for (name, refresh) in former { cells[name]?.refresh = refresh }
      refreshTexts.append((refresh.revision, text))
      refreshes.removeAll { $0.number == refresh.number }
    }
  }

  /// Appends the events that are told again and come before what the commit of a revision did.
  private mutating func appendRefreshes(before revision: Revision) {
    while !hasOverflowed, let first = refreshTexts.first, first.revision < revision {
      count(first.text)
      text.append(first.text)
      lastTold = first.revision
      refreshTexts.removeFirst()
    }
  }

  /// Counts an event toward what the stream may be sent; one that is too long exceeds it.
  private mutating func count(_ event: EventBuffer) {
    byteCount = hasOverflowed || event.isTooLong ? .max : byteCount + event.count
  }

  /// The events as they are told, kept as long as their values are not certainly longer than may be sent.
  private struct Gathered {
    let limit: Int
    var events: [ObserverEvent] = []
    var textBytes = 0
    var hasOverflowed = false

    mutating func append(_ event: ObserverEvent) {
      textBytes += event.changes.reduce(0) { $0 + $1.textBytes }
      hasOverflowed = hasOverflowed || event.hasOverflowed || textBytes > limit
      if hasOverflowed { events = [] } else { events.append(event) }
    }
  }

  /// Encodes what was missed up to a revision: the changes of objects and of live queries by one commit go together.
  fileprivate mutating func encode(_ sources: [Source], upTo revision: Revision, _ encoder: EventEncoder) {
    var merged: [Revision: StreamEvent] = [:]
    var contentBytes = 0
    for event in gathered.events where event.revision <= revision {
      merged[event.revision, default: StreamEvent(revision: event.revision, writer: event.writer)]
        .add(StreamEvent(event))
    }
    gathered.events.removeAll { $0.revision <= revision }
    for source in sources {
      let begin = max(encodedRevision, gates[source.name]?.beginsAt ?? 0)
      for content in source.contents where content.revision > begin && content.revision <= revision {
        guard contentBytes <= byteLimit else {
          byteCount = .max
          return
        }
        let encoded = encoder.encoded(content)
        contentBytes = encoded.text.isTooLong ? .max : contentBytes + encoded.text.count
        let notification = QueryNotification(
          cell: source.name, context: source.binding.context?.text, body: .content(encoded))
        merged[content.revision, default: StreamEvent(revision: content.revision, writer: content.writer)]
          .queries.append(notification)
      }
    }
    encodedRevision = max(revision, encodedRevision)
    for event in merged.values.sorted(by: { $0.revision < $1.revision }) where !hasOverflowed {
      appendRefreshes(before: event.revision)
      var all = encoder.text(limit: byteLimit)
      encoder.append(event, to: &all)
      count(all)
      guard let visible = cells.visiblePart(of: event, through: gates) else { continue }
      encoder.append(visible, to: &text)
      lastTold = event.revision
    }
    appendRefreshes(before: revision + 1)
  }
}

/// The rule that decides which revisions a cell of a resumed stream is told, and which it remembers, when the revisions
/// after the one that its client has are gone through again.
struct CellGate: Hashable {
  /// The treatment of what a commit did to the cell.
  enum Way {
    /// Its client has it, or the cell remembers it already.
    case drop
    /// Its client is told, although the cell is off screen by now.
    case tell
    /// Its client is told, and a cell off screen remembers it.
    case pass
  }

  /// The last revision whose state the client has.
  let toldUpTo: Revision
  /// The revision at which the cell was last told the state of what it shows. Changes by commits up to there are not
  /// for it: it may have shown something else, or nothing.
  let beginsAt: Revision
  /// The revisions for which the client may lack the changes of an object that the cell showed before; nil if there are
  /// none.
  let former: ClosedRange<Revision>?
  /// The last revision that the cell was on screen at; nil while it is on screen.
  let hiddenAfter: Revision?
  /// The revision up to which a cell off screen remembers by itself what it missed: that at which the stream was cut.
  let rememberedUpTo: Revision

  /// Returns true if the commit of a revision concerns an object that the cell showed before.
  func isOfFormer(_ revision: Revision) -> Bool { former?.contains(revision) ?? false }

  /// Returns the treatment of what the commit of a revision did.
  func way(of revision: Revision) -> Way {
    if isOfFormer(revision) { return .tell }
    guard let hiddenAfter else { return revision > toldUpTo ? .pass : .drop }
    if revision <= hiddenAfter { return revision > toldUpTo ? .tell : .drop }
    return revision > rememberedUpTo ? .pass : .drop
  }
}
