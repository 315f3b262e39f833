import KeyValueModel
import KeyValueObserving
import Store

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
  private(set) var text: EventText
  /// Whether it ends with the object's end.
  private(set) var isOver = false
  private var hasTooManyChanges = false
  /// Whether it is longer than it may be; then there is no text.
  var hasOverflowed: Bool { hasTooManyChanges || text.isTooLong }

  /// What was missed.
  init(
    _ observations: [Observation], _ missed: MissedCommits, _ encoder: EventEncoder, limits: StoreLimits,
    byteLimit: Int
  ) {
    self.encoder = encoder
    var written = Written(text: encoder.text(limit: byteLimit))
    replay = Replay([(nil, observations)], missed, limits: limits) {
      written.append($0, encoder)
    }
    text = written.text
    take(written)
  }

  /// The last revision that is in it.
  var revision: Revision { replay.revision }

  /// Whether the object did not exist at the revision that was resumed from.
  var isAbsent: Bool { !replay.absent.isEmpty }

  /// What it takes up in memory, about.
  var weight: Int { text.count + 1024 }

  /// Goes on to what is published, where the commits in between are known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var written = Written(text: text)
    replay.bringUp(through: commits, to: snapshot.state, limits: limits) {
      written.append($0, encoder)
    }
    take(written)
  }

  private mutating func take(_ written: Written) {
    text = written.text
    isOver = isOver || written.isOver
    hasTooManyChanges = hasTooManyChanges || written.hasTooManyChanges
  }

  /// Events while they are told: each is encoded at once, so that what was missed is never held as values.
  private struct Written {
    var text: EventText
    var isOver = false
    var hasTooManyChanges = false

    mutating func append(_ event: ObserverEvent, _ encoder: EventEncoder) {
      isOver = isOver || !event.gone.isEmpty
      hasTooManyChanges = hasTooManyChanges || event.hasOverflowed
      if !hasTooManyChanges { encoder.append(StreamEvent(event), to: &text) }
    }
  }
}
