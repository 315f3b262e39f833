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
  var text: EventBuffer { replay.text }

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

/// What the cells of a stream missed that resumes, worked out and encoded step by step while others write.
struct CellReplay {
  /// A cell, and what became of its live query after the revision that is resumed from, if it shows one.
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

  /// A cell, and what it observed of an object that it had lost before it was bound anew; its client has what became of
  /// that up to a revision.
  typealias Former = (name: String, observations: [Observation], since: Revision)

  /// What was missed of objects, up to its revision.
  fileprivate private(set) var objects: Replay?
  private let formers: [Former]
  /// The cells whose object did not exist where they begin.
  fileprivate private(set) var absent: [String?] = []
  /// What of each revision is for which cell.
  private let gates: [String: CellGate]
  /// The events that are to be told once more, before they are evaluated, and after.
  private var refreshes: [Refresh]
  private var refreshTexts: [(revision: Revision, text: EventBuffer)] = []
  /// The events of these, as far as they are not encoded.
  private var gathered: Gathered
  /// The cells after what is encoded; those off screen remember it.
  fileprivate private(set) var cells: CellSet
  /// What those on screen are sent, encoded, up to `encodedRevision`.
  fileprivate private(set) var text: EventBuffer
  private var encodedRevision: Revision = 0
  /// The last revision that cells are told of.
  fileprivate private(set) var lastTold: Revision = 0
  /// How long the events are, those included that no cell on screen receives.
  private var byteCount = 0
  private let byteLimit: Int

  /// Nothing is known yet of what these cells missed.
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

  /// Whether one commit did more than an event may hold, or all of them more than the stream may be sent.
  fileprivate var hasOverflowed: Bool { gathered.hasOverflowed || byteCount > byteLimit || text.isTooLong }

  /// Begins with what was missed of objects: of each cell from where its client has it, or from where it was bound.
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

  /// Goes on to what is published, where the commits in between are known.
  fileprivate mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var gathered = self.gathered
    objects?.bringUp(through: commits, to: snapshot.state, limits: limits) { gathered.append($0) }
    self.gathered = gathered
  }

  /// Whether events are still to be evaluated that are told once more.
  fileprivate var wantsRefreshes: Bool { !refreshes.isEmpty }

  /// Evaluates them as they were. Those whose past is not known any more are left. Throws where a filter costs too
  /// much.
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
      // It was no event of what these cells show now.
      for (name, refresh) in former { cells[name]?.refresh = refresh }
      refreshTexts.append((refresh.revision, text))
      refreshes.removeAll { $0.number == refresh.number }
    }
  }

  /// Adds the events that are told once more and come before what a commit did.
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

  /// Events as they are told, kept while their values are not certainly longer than may be sent.
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

  /// Encodes what was missed up to a revision: the changes, and what became of live queries, of one commit together.
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

/// Which revisions a cell of a stream that is resumed is told, and which it remembers, when they are gone through once
/// more from the revision that its client has.
struct CellGate: Hashable {
  /// What becomes of what a commit did to the cell.
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
  /// The revision at which the cell was last told the state of what it shows. What commits did up to there to that is
  /// not for it: it may have shown something else, or nothing.
  let beginsAt: Revision
  /// The revisions of which the client may lack what became of an object that the cell showed before; nil where there
  /// are none.
  let former: ClosedRange<Revision>?
  /// The last revision that the cell was on screen at; nil while it is on screen.
  let hiddenAfter: Revision?
  /// Up to where a cell off screen remembers by itself what it missed: when the stream was cut.
  let rememberedUpTo: Revision

  /// Whether what a commit did is of an object that the cell showed before.
  func isOfFormer(_ revision: Revision) -> Bool { former?.contains(revision) ?? false }

  /// What becomes of what a commit did.
  func way(of revision: Revision) -> Way {
    if isOfFormer(revision) { return .tell }
    guard let hiddenAfter else { return revision > toldUpTo ? .pass : .drop }
    if revision <= hiddenAfter { return revision > toldUpTo ? .tell : .drop }
    return revision > rememberedUpTo ? .pass : .drop
  }
}
