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
  private var gathered: Gathered
  /// The cells after what is encoded; those off screen remember it.
  private(set) var cells: CellSet
  /// What those on screen are sent, encoded, up to `encodedRevision`.
  private(set) var text: EventText
  private var encodedRevision: Revision = 0
  /// How long the events are, those included that no cell on screen receives.
  private var byteCount = 0
  private let byteLimit: Int

  /// Nothing is known yet of what these cells missed.
  init(_ cells: CellSet, _ services: StreamServices) {
    self.cells = cells
    byteLimit = services.limits.replayBytes
    text = services.encoder.text(limit: byteLimit)
    gathered = Gathered(limit: byteLimit)
  }

  /// Whether one commit did more than an event may hold, or all of them more than the stream may be sent.
  var hasOverflowed: Bool { gathered.hasOverflowed || byteCount > byteLimit || text.isTooLong }

  /// Begins with what was missed of objects.
  mutating func begin(
    _ cells: [(name: String?, observations: [Observation])], _ missed: MissedCommits, limits: StoreLimits
  ) {
    var gathered = self.gathered
    objects = Replay(cells, missed, limits: limits) { gathered.append($0) }
    self.gathered = gathered
  }

  /// Goes on to what is published, where the commits in between are known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var gathered = self.gathered
    objects?.bringUp(through: commits, to: snapshot.state, limits: limits) { gathered.append($0) }
    self.gathered = gathered
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
    for event in gathered.events where event.revision <= revision { merged[event.revision] = StreamEvent(event) }
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
      var all = encoder.text(limit: byteLimit)
      encoder.append(event, to: &all)
      byteCount = all.isTooLong ? .max : byteCount + all.count
      if let visible = cells.visiblePart(of: event) { encoder.append(visible, to: &text) }
    }
  }
}
