internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// What is worked out, before anything is locked, for a stream with cells that goes on where an earlier one ended.
struct ResumedCells {
  /// A cell, and what became of its live query after the revision that is resumed from, if it shows one.
  typealias Source = (name: String, binding: CellBinding, contents: [QueryContent])

  /// The objects that the cells were read through a moment ago, all of which were there; nil where some were not.
  var objects: Set<Reference>?
  /// The live queries of cells, where somebody has evaluated them.
  var prepared: [Query: PreparedQuery] = [:]
  /// What was missed of objects, up to its revision.
  private(set) var replay: Replay?
  /// The same, told, as far as it is not encoded.
  private var events: [ObserverEvent] = []
  /// Whether one commit did more than a stream is told.
  private(set) var hasOverflowed = false
  /// The cells after what is encoded was told to them; those off screen remember it.
  var cells: [String: Cell] = [:]
  /// What those on screen were told, encoded, up to `encodedRevision`.
  private(set) var bytes: [UInt8] = []
  private var encodedRevision: Revision = 0
  /// How long the events are, those included that nobody is told who is off screen.
  private(set) var byteCount = 0

  /// Begins with what was missed of objects.
  mutating func begin(
    _ cells: [(name: String?, observations: [Observation])], _ missed: MissedCommits, changesPerObserver: Int
  ) {
    var told: [ObserverEvent] = []
    replay = Replay(cells, missed, changesPerObserver: changesPerObserver) { told.append($0) }
    take(told)
  }

  /// Goes on to what is published, where the commits in between are known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, changesPerObserver: Int) {
    guard let commits, !commits.isEmpty else { return }
    var told: [ObserverEvent] = []
    replay?.bringUp(through: commits, to: snapshot.state, changesPerObserver: changesPerObserver) { told.append($0) }
    take(told)
  }

  private mutating func take(_ told: [ObserverEvent]) {
    hasOverflowed = hasOverflowed || told.contains(where: \.hasOverflowed)
    events += told
  }

  /// Encodes what was missed up to a revision: the changes, and what became of live queries, of one commit together.
  mutating func encode(_ sources: [Source], upTo revision: Revision, _ encoder: EventEncoder, byteLimit: Int) {
    var merged: [Revision: StreamEvent] = [:]
    for event in events where event.revision <= revision { merged[event.revision] = StreamEvent(event) }
    events.removeAll { $0.revision <= revision }
    for source in sources {
      for content in source.contents where content.revision > encodedRevision && content.revision <= revision {
        let news = QueryNews(
          cell: source.name, context: source.binding.context?.text, sort: .content(encoder.encoded(content)))
        merged[content.revision, default: StreamEvent(revision: content.revision, writer: content.writer)]
          .queries.append(news)
      }
    }
    encodedRevision = max(revision, encodedRevision)
    let stream = CellStream(name: "", observer: ObserverID(0))
    stream.cells = cells
    for event in merged.values.sorted(by: { $0.revision < $1.revision }) where byteCount <= byteLimit {
      var all: [UInt8] = []
      encoder.append(event, to: &all)
      byteCount += all.count
      if let told = stream.sift(event) { encoder.append(told, to: &bytes) }
    }
    cells = stream.cells
  }
}
