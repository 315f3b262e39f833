import KeyValueModel
import KeyValueObserving
import ModelStore

/// What the streams of a topic were sent after a revision, encoded, for streams that resume there. Brought up to the
/// present when a stream is opened, and kept for the next.
struct ObjectReplay: Sendable {
  /// What makes two replays the same.
  struct Key: Hashable, Sendable {
    let topic: ObjectTopic.Key
    let after: Revision
  }

  private var replay: Replay
  private let encoder: EventEncoder
  private let byteLimit: Int
  private(set) var bytes: [UInt8] = []
  /// Whether it ends with the object's end.
  private(set) var isOver = false
  /// Whether it is longer than it may be; then there are no bytes.
  private(set) var hasOverflowed = false

  /// What was missed.
  init(
    _ observations: [Observation], _ missed: MissedCommits, _ encoder: EventEncoder, changesPerObserver: Int,
    byteLimit: Int
  ) {
    self.encoder = encoder
    self.byteLimit = byteLimit
    var events: [ObserverEvent] = []
    replay = Replay([(nil, observations)], missed, changesPerObserver: changesPerObserver) { events.append($0) }
    take(events)
  }

  /// The last revision that is in it.
  var revision: Revision { replay.revision }

  /// Whether the object did not exist at the revision that was resumed from.
  var isAbsent: Bool { !replay.absent.isEmpty }

  /// What it takes up in memory, about.
  var weight: Int { bytes.count + 1024 }

  /// Goes on to what is published, where the commits in between are known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, changesPerObserver: Int) {
    guard let commits, !commits.isEmpty else { return }
    var events: [ObserverEvent] = []
    replay.bringUp(through: commits, to: snapshot.state, changesPerObserver: changesPerObserver) { events.append($0) }
    take(events)
  }

  private mutating func take(_ events: [ObserverEvent]) {
    for event in events {
      isOver = isOver || !event.gone.isEmpty
      hasOverflowed = hasOverflowed || event.hasOverflowed
      guard !hasOverflowed else { break }
      encoder.append(StreamEvent(event), to: &bytes)
      hasOverflowed = bytes.count > byteLimit
    }
    if hasOverflowed { bytes = [] }
  }
}
