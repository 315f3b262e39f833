import Locking
import Measuring
import Synchronization

/// The numbers that all threads of a hub share.
final class HubCounters: Sendable {
  private let streams = Atomic<Int>(0)
  private let pending = Atomic<Int>(0)
  private let lagging = Atomic<Int>(0)
  /// How long streams lagged.
  let lagDurations = DurationHistogram()
  /// How many of the streams each client has. Touched when a stream opens and ends, never by events.
  private let byClient = Locked([ClientAddress: Int]())

  var openStreams: Int { streams.load(ordering: .acquiring) }

  var pendingBytes: Int { pending.load(ordering: .relaxed) }

  var laggingStreams: Int { lagging.load(ordering: .acquiring) }

  /// Takes a place for a stream of a client. Throws where all are taken, or as many as one client may have.
  func openStream(for client: ClientAddress, _ limits: ServerLimits) throws(StreamHubError) {
    let isWithinShare = byClient.withLock { counts in
      let count = counts[client] ?? 0
      guard count < limits.streamsPerAddress else { return false }
      counts[client] = count + 1
      return true
    }
    guard isWithinShare else { throw .tooManyStreamsOfClient }
    if streams.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue > limits.streams {
      closeStream(of: client)
      throw .tooManyStreams
    }
  }

  func closeStream(of client: ClientAddress) {
    streams.wrappingSubtract(1, ordering: .acquiringAndReleasing)
    byClient.withLock { counts in
      guard let count = counts[client] else { return }
      counts[client] = count > 1 ? count - 1 : nil
    }
  }

  func addPending(_ byteCount: Int) {
    pending.wrappingAdd(byteCount, ordering: .relaxed)
  }

  func addLagging(_ count: Int) {
    lagging.wrappingAdd(count, ordering: .acquiringAndReleasing)
  }
}
