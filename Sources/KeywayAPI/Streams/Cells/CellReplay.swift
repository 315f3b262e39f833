import KeyValueModel
import KeyValueObserving
import ModelStore

/// What the cells of a stream missed that resumes, worked out and encoded step by step while others write.
struct CellReplay {
  /// A cell, and what became of its live query after the revision that is resumed from, if it shows one.
  typealias Source = (name: String, binding: CellBinding, contents: [QueryContent])

  /// What was missed of objects, up to its revision.
  private(set) var objects: Replay?
  /// The events of these, as far as they are not encoded.
  private var events: [ObserverEvent] = []
  /// Whether one commit did more than an event may hold.
  private(set) var hasOverflowed = false
  /// The cells after what is encoded; those off screen remember it.
  private(set) var cells: CellSet
  /// What those on screen are sent, encoded, up to `encodedRevision`.
  private(set) var bytes: [UInt8] = []
  private var encodedRevision: Revision = 0
  /// How long the events are, those included that no cell on screen receives.
  private(set) var byteCount = 0

  /// Nothing is known yet of what these cells missed.
  init(_ cells: CellSet) { self.cells = cells }

  /// Begins with what was missed of objects.
  mutating func begin(
    _ cells: [(name: String?, observations: [Observation])], _ missed: MissedCommits, changesPerObserver: Int
  ) {
    var events: [ObserverEvent] = []
    objects = Replay(cells, missed, changesPerObserver: changesPerObserver) { events.append($0) }
    take(events)
  }

  /// Goes on to what is published, where the commits in between are known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, changesPerObserver: Int) {
    guard let commits, !commits.isEmpty else { return }
    var events: [ObserverEvent] = []
    objects?.bringUp(through: commits, to: snapshot.state, changesPerObserver: changesPerObserver) {
      events.append($0)
    }
    take(events)
  }

  private mutating func take(_ events: [ObserverEvent]) {
    hasOverflowed = hasOverflowed || events.contains(where: \.hasOverflowed)
    self.events += events
  }

  /// Encodes what was missed up to a revision: the changes, and what became of live queries, of one commit together.
  mutating func encode(_ sources: [Source], upTo revision: Revision, _ encoder: EventEncoder, byteLimit: Int) {
    var merged: [Revision: StreamEvent] = [:]
    for event in events where event.revision <= revision { merged[event.revision] = StreamEvent(event) }
    events.removeAll { $0.revision <= revision }
    for source in sources {
      for content in source.contents where content.revision > encodedRevision && content.revision <= revision {
        let notification = QueryNotification(
          cell: source.name, context: source.binding.context?.text, body: .content(encoder.encoded(content)))
        merged[content.revision, default: StreamEvent(revision: content.revision, writer: content.writer)]
          .queries.append(notification)
      }
    }
    encodedRevision = max(revision, encodedRevision)
    for event in merged.values.sorted(by: { $0.revision < $1.revision }) where byteCount <= byteLimit {
      var all: [UInt8] = []
      encoder.append(event, to: &all)
      byteCount += all.count
      if let visible = cells.visiblePart(of: event) { encoder.append(visible, to: &bytes) }
    }
  }
}
