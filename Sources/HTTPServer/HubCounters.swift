import Synchronization

/// The numbers that all threads of a hub share.
final class HubCounters: Sendable {
  private let streams = Atomic<Int>(0)
  private let pending = Atomic<Int>(0)
  private let lagging = Atomic<Int>(0)

  var openStreams: Int { streams.load(ordering: .acquiring) }

  var pendingBytes: Int { pending.load(ordering: .relaxed) }

  var laggingStreams: Int { lagging.load(ordering: .acquiring) }

  /// Takes a place for a stream unless all are taken.
  func openStream(limit: Int) -> Bool {
    let count = streams.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
    if count > limit { closeStream() }
    return count <= limit
  }

  func closeStream() {
    streams.wrappingSubtract(1, ordering: .acquiringAndReleasing)
  }

  func addPending(_ byteCount: Int) {
    pending.wrappingAdd(byteCount, ordering: .relaxed)
  }

  func addLagging(_ count: Int) {
    lagging.wrappingAdd(count, ordering: .acquiringAndReleasing)
  }
}
