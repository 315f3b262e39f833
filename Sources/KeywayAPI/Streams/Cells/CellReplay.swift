import KeyValueModel
import KeyValueObserving
import ModelStore

/// What the cells of a stream missed that resumes, worked out and encoded step by step while others write.
struct CellReplay {
  /// A cell, and what became of its live query after the revision that is resumed from, if it shows one.
  typealias Source = (name: String, binding: CellBinding, contents: [QueryContent])

  /// An event of a stream that its client may not have received, which told cells their state at a revision.
  struct Refresh {
    /// A cell, and what it observed or watched.
    typealias Part = (name: String, observations: [Observation], query: Query?, gone: Reference?)
    let revision: Revision
    let number: Int
    let isFirstOfID: Bool
    var parts: [Part]
  }

  /// What was missed of objects, up to its revision.
  private(set) var objects: Replay?
  /// The same of cells that were bound later, to objects that were made later.
  private var laterObjects: [Replay] = []
  /// The cells whose object did not exist where they begin.
  private(set) var absent: [String?] = []
  /// What of each revision is for which cell.
  private let gates: [String: CellGate]
  /// The events that are to be told once more, before they are evaluated, and after.
  private var refreshes: [Refresh]
  private var refreshTexts: [(revision: Revision, text: EventText)] = []
  /// The events of these, as far as they are not encoded.
  private var gathered: Gathered
  /// The cells after what is encoded; those off screen remember it.
  private(set) var cells: CellSet
  /// What those on screen are sent, encoded, up to `encodedRevision`.
  private(set) var text: EventText
  private var encodedRevision: Revision = 0
  /// The last revision that cells are told of.
  private(set) var lastTold: Revision = 0
  /// How long the events are, those included that no cell on screen receives.
  private var byteCount = 0
  private let byteLimit: Int

  /// Nothing is known yet of what these cells missed.
  init(
    _ cells: CellSet, _ services: StreamServices, through gates: [String: CellGate] = [:], refreshes: [Refresh] = []
  ) {
    self.cells = cells
    self.gates = gates
    self.refreshes = refreshes
    byteLimit = services.limits.replayBytes
    text = services.encoder.text(limit: byteLimit)
    gathered = Gathered(limit: byteLimit)
  }

  /// Whether one commit did more than an event may hold, or all of them more than the stream may be sent.
  var hasOverflowed: Bool { gathered.hasOverflowed || byteCount > byteLimit || text.isTooLong }

  /// Begins with what was missed of objects.
  mutating func begin(
    _ cells: [(name: String?, observations: [Observation])], _ missed: MissedCommits, _ history: PublishedHistory,
    limits: StoreLimits
  ) {
    var gathered = self.gathered
    let objects = Replay(cells, missed, limits: limits) { gathered.append($0) }
    self.objects = objects
    absent = objects.absent
    let late = cells.filter { absent.contains($0.name) && isLate($0.name, missed.after) }
    for (revision, cells) in Dictionary(grouping: late, by: { gates[$0.name ?? ""]?.toldUpTo ?? 0 }) {
      guard let missed = MissedCommits(after: revision, history) else { continue }
      let later = Replay(cells, missed, limits: limits) { gathered.append($0) }
      let found = cells.map(\.name).filter { !later.absent.contains($0) }
      absent.removeAll { found.contains($0) }
      laterObjects.append(later)
    }
    self.gathered = gathered
  }

  /// Whether a cell has nothing to do with what happened right after a revision.
  private func isLate(_ name: String?, _ revision: Revision) -> Bool {
    name.flatMap { gates[$0] }.map { $0.toldUpTo > revision } ?? false
  }

  /// Goes on to what is published, where the commits in between are known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var gathered = self.gathered
    objects?.bringUp(through: commits, to: snapshot.state, limits: limits) { gathered.append($0) }
    for index in laterObjects.indices {
      let known = laterObjects[index].revision
      laterObjects[index].bringUp(
        through: commits.filter { $0.revision > known }, to: snapshot.state, limits: limits
      ) { gathered.append($0) }
    }
    self.gathered = gathered
  }

  /// Whether events are still to be evaluated that are told once more.
  var wantsRefreshes: Bool { !refreshes.isEmpty }

  /// Evaluates them as they were. Those whose past is not known any more are left. Throws where a filter costs too
  /// much.
  mutating func evaluateRefreshes(
    _ history: PublishedHistory, _ limits: StoreLimits, _ services: StreamServices
  ) throws(Problem) {
    var cost = limits.queryOpeningCost
    for refresh in refreshes.sorted(by: { ($0.revision, $0.number) < ($1.revision, $1.number) }) {
      guard let past = MissedCommits(after: refresh.revision, history)?.past else { return }
      var update = CellUpdate(limit: services.limits.eventBytes)
      for part in refresh.parts {
        if let gone = part.gone { update.add(ObserverEvent.Gone(cell: part.name, object: gone)) }
        update.addInitial(part.observations, of: part.name, in: past)
        guard let query = part.query else { continue }
        let live = try Problem.translating { () throws(ModelError) in try LiveQuery(query, in: past, cost: &cost) }
        update.add(
          QueryNotification(
            cell: part.name, context: cells[part.name]?.binding.context?.text,
            body: .results(live.result, past, isInitial: true)))
      }
      let text = cells.encode(
        update, at: refresh.revision, services.encoder, isFirstOfID: refresh.isFirstOfID)
      refreshTexts.append((refresh.revision, text))
      refreshes.removeAll { $0.number == refresh.number }
    }
  }

  /// Adds the events that are told once more and come before what a commit did.
  private mutating func appendRefreshes(before revision: Revision) {
    while !hasOverflowed, let first = refreshTexts.first, first.revision < revision {
      byteCount = first.text.isTooLong ? .max : byteCount + first.text.count
      text.append(first.text)
      lastTold = first.revision
      refreshTexts.removeFirst()
    }
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
  mutating func encode(_ sources: [Source], upTo revision: Revision, _ encoder: EventEncoder) {
    var merged: [Revision: StreamEvent] = [:]
    var contentBytes = 0
    for event in gathered.events where event.revision <= revision {
      merged[event.revision, default: StreamEvent(revision: event.revision, writer: event.writer)]
        .add(StreamEvent(event))
    }
    gathered.events.removeAll { $0.revision <= revision }
    for source in sources {
      for content in source.contents where content.revision > encodedRevision && content.revision <= revision {
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
      byteCount = all.isTooLong ? .max : byteCount + all.count
      guard let visible = cells.visiblePart(of: event, through: gates) else { continue }
      encoder.append(visible, to: &text)
      lastTold = event.revision
    }
    appendRefreshes(before: revision + 1)
  }
}
