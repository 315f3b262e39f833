import KeyValueModel
import KeyValueObserving
import Store

/// What the cells of a stream missed that resumes, worked out and encoded step by step while others write.
struct CellReplay {
  /// A cell, and what became of its live query after the revision that is resumed from, if it shows one.
  typealias Source = (name: String, binding: CellBinding, contents: [QueryContent])

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
  private(set) var objects: Replay?
  private let formers: [Former]
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
  var hasOverflowed: Bool { gathered.hasOverflowed || byteCount > byteLimit || text.isTooLong }

  /// Begins with what was missed of objects: of each cell from where its client has it, or from where it was bound.
  mutating func begin(
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
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var gathered = self.gathered
    objects?.bringUp(through: commits, to: snapshot.state, limits: limits) { gathered.append($0) }
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
      byteCount = all.isTooLong ? .max : byteCount + all.count
      guard let visible = cells.visiblePart(of: event, through: gates) else { continue }
      encoder.append(visible, to: &text)
      lastTold = event.revision
    }
    appendRefreshes(before: revision + 1)
  }
}
