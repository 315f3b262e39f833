import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// Opens streams of one object, and keeps for a while what resuming streams were sent: a crowd that was cut off
/// together comes back together.
final class ObjectStreams: Sendable {
  /// How many revisions old a kept replay may become: it keeps the objects of its time in memory.
  private static let replayAge: Revision = 1000

  private let registry: StreamRegistry
  private let replays: ObjectStreamOpening.ReplayCache

  /// Streams of a registry.
  init(_ registry: StreamRegistry) {
    self.registry = registry
    replays = Locked(BoundedCache(weightLimit: registry.services.limits.resumedBytes))
  }

  /// Opens a stream. Throws `unknown-object`, what is wrong with the key paths, and `too-many-streams`, before anything
  /// is registered. Throws `too-many-steps` where its first values take more than `steps`, those of a request by
  /// default.
  func open(
    _ request: ObjectStreamRequest, in store: Store, steps: Int? = nil, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    var opening = try ObjectStreamOpening(
      request, store.snapshot, registry.services, replays, steps: min(steps ?? .max, store.limits.queryOpeningCost))
    try opening.follow(in: store)
    return try registry.open(opening, in: store, isAbandoned)
  }

  /// Throws what `open` would throw of the request itself; opens nothing.
  func check(_ request: ObjectStreamRequest, in store: Store) throws(Problem) {
    var opening = try ObjectStreamOpening(
      request, store.snapshot, registry.services, replays, steps: ObservedValues.stepsUnderLock)
    try store.withPublication { publication throws(Problem) in try opening.check(publication) }
  }

  /// Forgets replays that are old by now.
  func forgetReplays(at present: Revision) {
    guard present > Self.replayAge else { return }
    replays.withLock { $0.forget(before: present - Self.replayAge) }
  }
}
