import Support
import Synchronization

/// The numbers that all threads of a hub share.
final class HubCounters: Sendable {
  private let streams = Atomic<Int>(0)
  private let pending = Atomic<Int>(0)
  private let lagging = Atomic<Int>(0)
  /// How long streams lagged.
  let lagDurations = DurationHistogram()
  /// The share of the streams that each client has. Touched when a stream opens and ends, never by events.
  private let shares: Locked<FairShares<ClientAddress>>

  /// Counts nothing yet. At most `streams.maximum` streams are open, `streams.perAddress` of one client.
  init(_ limits: ServerLimits) {
    shares = Locked(FairShares(ShareLimit(total: limits.streams, perClient: limits.streamsPerAddress)))
  }

  var openStreams: Int { streams.load(ordering: .acquiring) }

  var pendingBytes: Int { pending.load(ordering: .relaxed) }

  var laggingStreams: Int { lagging.load(ordering: .acquiring) }

  /// Takes a place for a stream of a client. Throws where the client's share, or the total, is used up.
  func openStream(for client: ClientAddress) throws(StreamHubError) {
    switch shares.withLock({ $0.take(1, for: client) }) {
    case .perClient: throw .tooManyStreamsOfClient
    case .total: throw .tooManyStreams
    case nil: streams.wrappingAdd(1, ordering: .acquiringAndReleasing)
    }
  }

  /// Gives back the place of a stream that has ended.
  func closeStream(of client: ClientAddress) {
    streams.wrappingSubtract(1, ordering: .acquiringAndReleasing)
    shares.withLock { $0.giveBack(1, of: client) }
  }

  func addPending(_ byteCount: Int) {
    pending.wrappingAdd(byteCount, ordering: .relaxed)
  }

  func addLagging(_ count: Int) {
    lagging.wrappingAdd(count, ordering: .acquiringAndReleasing)
  }
}
