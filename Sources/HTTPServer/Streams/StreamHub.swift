package import Logging
package import Support
import Synchronization

/// Sends server-sent events to many clients.
///
/// Every stream belongs to one of a few threads, which alone knows its socket, its channel and its unsent data.
/// Commands of other threads go into that thread's inbox and are executed in the order of arrival, so that a stream
/// gets its events in the order in which they were posted.
package final class StreamHub: Sendable {
  private let limits: ServerLimits
  private let ledger: MemoryLedger
  private let logger: Logger
  private let counters: HubCounters
  private let workers: [HubWorker]
  private let threads = Locked([SystemThread]())
  private let firstID: UInt64
  private let lastID: Atomic<UInt64>
  private let isDraining = Atomic<Bool>(false)

  /// Creates a hub without threads: streams that are opened and events that are posted wait for `start(delegate:)`. The
  /// ledger counts the data that waits for each client; by default the total is unbounded. Streams are numbered from
  /// `numbers` + 1.
  package init(
    limits: ServerLimits, ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max), numbers: UInt64 = 0,
    logger: Logger
  ) {
    firstID = numbers
    lastID = Atomic(numbers)
    self.limits = limits
    self.ledger = ledger
    self.logger = logger
    let counters = HubCounters(limits)
    self.counters = counters
    workers = (0..<limits.streamThreadCount).map { _ in HubWorker(counters: counters) }
  }

  deinit {
    stop()
  }

  /// Starts the threads, once, before the first stream is taken over.
  package func start(delegate: any StreamHubDelegate) throws(HTTPServerError) {
    let (limits, ledger) = (limits, ledger)
    for (index, worker) in workers.enumerated() {
      guard let epoll = HubLoop.makeEpoll(for: worker) else { throw .outOfResources }
      let thread = SystemThread("keyway-streams") {
        HubLoop(
          worker: worker, epoll: epoll, delegate: delegate, limits: limits, ledger: ledger, trimsMemory: index == 0
        ).run()
      }
      guard let thread else { throw .outOfResources }
      threads.withLock { $0.append(thread) }
    }
  }

  /// Returns true if this hub has opened a stream, which may have ended. Any thread.
  package func hasOpened(_ id: StreamID) -> Bool {
    id.number > firstID && id.number <= lastID.load(ordering: .relaxed)
  }

  /// The number of streams that have been opened and have not ended. Any thread.
  package var openStreams: Int { counters.openStreams }

  /// The number of bytes that wait for slow readers in the program, not in the kernel. Any thread.
  package var pendingBytes: Int { counters.pendingBytes }

  /// The number of open streams that miss events, until their owner has provided a catch-up. Any thread.
  package var laggingStreams: Int { counters.laggingStreams }

  /// The durations for which streams lagged, up to their catch-up or their end.
  package var lagDurations: DurationHistogram { counters.lagDurations }

  /// The lowest position that all threads have reached: every event posted up to it has been handed to each of its
  /// streams, or the stream was reported as lagging before. 0 while there is no thread, or nothing was posted with a
  /// position. It reaches the last position posted as soon as the threads have nothing more to do, and does not change
  /// after the hub has been stopped. Any thread.
  package var settledPosition: UInt64 { workers.map(\.settledPosition).min() ?? 0 }

  /// Returns an ID for a stream that will be opened, so that its prelude can contain it. Any thread.
  package func reserveID() -> StreamID { StreamID(lastID.wrappingAdd(1, ordering: .relaxed).newValue) }

  /// Opens a stream, under a reserved ID if one is given, and adds it to the channel. `prelude` is the text of whole
  /// events, sent immediately after the head of the response; events posted for the stream or its channel from now on
  /// follow it. The stream has to become the response to a request within `ServerLimits.requestSeconds`. `client` is
  /// the client that reads it and for which it is counted, `overflow` the action if that client is too slow, and
  /// `beginning` the part of the events that the prelude covers. Any thread.
  package func open(
    _ reserved: StreamID? = nil, for client: ClientAddress = .unknown, prelude: EventBytes, channel: ChannelID?,
    overflow: OverflowPolicy = .coalesce, beginning: StreamBeginning = .posted
  ) throws(StreamHubError) -> EventStream {
    guard !isDraining.load(ordering: .acquiring) else { throw .draining }
    try counters.openStream(for: client)
    let reservation: MemoryReservation?
    do throws(MemoryRefusal) {
      let bytes = QueueAccount.reserved(for: prelude.framedCount)
      reservation = bytes == 0 ? nil : try ledger.reserve(bytes, for: client, .replays)
    } catch {
      counters.closeStream(of: client)
      throw .noMemory
    }
    let id = reserved ?? reserveID()
    let worker = worker(of: id)
    let opening = HubOpening(
      id: id, client: client, prelude: prelude, channel: channel, overflow: overflow, beginning: beginning,
      reservation: reservation)
    guard worker.send(.open(opening)) else {
      counters.closeStream(of: client)
      throw .draining
    }
    return EventStream(id: id, worker: worker)
  }

  /// Posts a batch of deliveries, in order, to the streams that are open by now, and the position that heartbeats
  /// report from then on. Does not wait. Batches posted by several threads are kept in some order, which is the same
  /// for all streams of a hub thread; a caller that needs a specific order posts from one thread. Any thread.
  package func post(_ batch: [Delivery], position: UInt64?) {
    let isIdle = counters.openStreams == 0
    for (index, worker) in workers.enumerated() {
      worker.post(batch, position: position, isIdle: isIdle) { delivery in
        switch HubTarget(delivery) {
        case .channel: true
        case .stream(let id): self.index(of: id) == index
        }
      }
    }
  }

  /// Abandons a stream that was opened but did not become the response to its request; it ends as `clientGone`. Any
  /// thread; has no effect on a stream that has been taken over.
  package func abandon(_ stream: EventStream) {
    stream.worker.send(.abandon(stream.id))
  }

  /// Sends every stream its closing event and ends it; no stream can be opened from now on. Streams whose clients have
  /// not read that event by the deadline are cut. Returns when all have ended, or shortly after the deadline.
  package func drain(until deadline: ContinuousClock.Instant) {
    isDraining.store(true, ordering: .releasing)
    for worker in workers { worker.send(.drain) }
    waitUntilEmpty(until: deadline)
    let count = counters.openStreams
    guard count > 0 else { return }
    for worker in workers { worker.send(.cut) }
    logger.warning("cut streams that did not take their closing event", metadata: ["streams": "\(count)"])
    waitUntilEmpty(until: deadline + Self.cuttingDuration)
  }

  /// The time allowed for closing the sockets.
  private static let cuttingDuration = Duration.milliseconds(200)

  private func waitUntilEmpty(until deadline: ContinuousClock.Instant) {
    while counters.openStreams > 0, .now < deadline { SystemThread.pause(milliseconds: 5) }
  }

  /// Ends the open streams, without a closing event, and the threads; returns when they have ended. Further calls of
  /// any method have no effect.
  package func stop() {
    isDraining.store(true, ordering: .releasing)
    for worker in workers { worker.send(.stop) }
    let threads = threads.withLock { threads in
      defer { threads = [] }
      return threads
    }
    for thread in threads { thread.join() }
  }

  private func index(of id: StreamID) -> Int { Int(id.number % UInt64(workers.count)) }

  private func worker(of id: StreamID) -> HubWorker { workers[index(of: id)] }
}

/// The owner of a hub, which provides events and is notified. Every call is made on a hub thread, without a lock held:
/// it may post, but should not take long, because all streams of that thread wait.
package protocol StreamHubDelegate: Sendable {
  /// Returns the event for streams that have been silent, with the last position posted before it, or the last of its
  /// channel if the channel counts positions of its own. Called at most once a second for each position and thread.
  func heartbeat(at position: UInt64) -> EventBytes

  /// Returns the last event of a stream that ends for `overflow`, `lifetime` or `shutdown`; it is not called for other
  /// reasons.
  func closingEvent(_ reason: StreamEnd) -> EventBytes

  /// Reports that a stream opened with `OverflowPolicy.coalesce` misses events from now on: the event at the position
  /// is the first that it does not get, and it gets none of the later ones, of its channel or its own, until its owner
  /// has answered `streamCaughtUp(_:)`. Queued events are still sent. Called once each time the stream begins to lag,
  /// and before `StreamHub.settledPosition` reaches the position. Not called for a stream that is ending.
  func streamLagged(_ id: StreamID, firstMissed position: UInt64)

  /// Asks for the events that a lagging stream has missed, because everything that was queued for it has been sent.
  /// Answer by posting `Delivery.catchUp`, now or later; called again after each answer that is not the last. A stream
  /// that ends in the meantime needs no answer.
  func streamCaughtUp(_ id: StreamID)

  /// Reports the end of a stream, exactly once for each that was opened, once its socket is closed. `isDelivered` is
  /// true if the peer has acknowledged everything that was posted, and did not close before it had read that.
  func streamEnded(_ id: StreamID, _ end: StreamEnd, isDelivered: Bool)
}

/// One item posted to a hub.
package enum Delivery: Sendable {
  /// Events for every stream that is in the channel by now.
  case channel(ChannelID, EventBytes)
  /// Events for one stream.
  case stream(StreamID, EventBytes)
  /// The end, as `StreamEnd.ended`, of every stream that is in the channel by now, after one more event if given.
  case endChannel(ChannelID, EventBytes?)
  /// The end of one stream, as `StreamEnd.ended`, after one more event if given.
  case endStream(StreamID, EventBytes?)
  /// The immediate end of one stream, as `StreamEnd.ended`: its unsent data is lost.
  case cutStream(StreamID)
  /// The answer to `StreamHubDelegate.streamCaughtUp(_:)`: bytes that replace what a lagging stream has missed, queued
  /// whatever their length if there is memory for them; otherwise the stream ends. After the last answer the stream
  /// gets what is posted later; before it, while `isLast` is false, it gets nothing else, and once these bytes are sent
  /// its owner is asked again. Ignored for a stream that does not lag.
  case catchUp(StreamID, EventBytes?, isLast: Bool)

  /// A stream, or every stream that is in a channel by now, misses the event of a position because it is too long to be
  /// made: the stream begins to lag there, or ends, as if too much waited for it.
  case streamMisses(StreamID, position: UInt64)
  case channelMisses(ChannelID, position: UInt64)

  var byteCount: Int {
    switch self {
    case .channel(_, let event), .stream(_, let event): event.framedCount
    case .streamMisses, .channelMisses, .cutStream: 0
    case .endChannel(_, let event), .endStream(_, let event), .catchUp(_, let event, _): event?.framedCount ?? 0
    }
  }
}

/// The right to answer one request with a stream that the hub has opened.
///
/// It has to be used once: as an `HandlerResponse.stream`, or given back with `StreamHub.abandon(_:)`.
package final class EventStream: Sendable {
  /// The ID with which events are posted for this stream alone, and its end is reported.
  package let id: StreamID
  let worker: HubWorker

  init(id: StreamID, worker: HubWorker) {
    self.id = id
    self.worker = worker
  }
}

/// The ID of one event stream of a hub; never reused.
package struct StreamID: Hashable, Sendable {
  /// The number, counting up in the order of reservation.
  package let number: UInt64

  package init(_ number: UInt64) {
    self.number = number
  }
}

/// The ID of a group of streams that get identical bytes. The owner of the hub chooses the numbers.
package struct ChannelID: Hashable, Sendable {
  let number: UInt64

  /// Creates the ID with a number.
  package init(_ number: UInt64) {
    self.number = number
  }
}

/// The events that a stream already has when it is opened.
package enum StreamBeginning: Hashable, Sendable {
  /// Everything that was posted before: its heartbeats report the positions that are posted to the hub.
  case posted
  /// Everything that was posted to its channel, up to this position. The channel counts positions of its own, because
  /// its events are posted later than the hub's positions: heartbeats of its streams report the position of their last
  /// event. Either all streams of a channel begin with `posted` or none does.
  case position(UInt64)
  /// Less than that: its channel counts positions of its own, and the stream lags from the beginning. Its owner is
  /// asked for what it misses, by `StreamHubDelegate.streamCaughtUp(_:)`, once the prelude is sent, without
  /// `streamLagged(_:firstMissed:)` before.
  case behind
}

/// The action for a stream for which more than `ServerLimits.pendingBytesPerStream` waits.
package enum OverflowPolicy: Sendable {
  /// The stream stays open and lags: queued events are sent, later ones are dropped, and once everything is sent the
  /// owner provides one catch-up in their place; see `StreamHubDelegate.streamLagged(_:firstMissed:)`.
  case coalesce
  /// Unsent events are dropped, and the stream ends as `StreamEnd.overflow` with a closing event.
  case disconnect
}

/// The reason for which a stream ended.
package enum StreamEnd: String, Sendable {
  /// The client closed its side, or its network went away, or it never took the stream.
  case clientGone
  /// More waited for the reader than a stream may hold, and it was opened with `OverflowPolicy.disconnect`; or there
  /// was no memory for the catch-up.
  case overflow
  /// The owner ended it.
  case ended
  /// It reached the maximum lifetime of a stream.
  case lifetime
  /// The hub was drained or stopped.
  case shutdown
  /// The reader read nothing for too long.
  case stalled
}

/// The reason why a hub did not open a stream.
package enum StreamHubError: Error, Equatable {
  /// The limit on open streams is reached.
  case tooManyStreams
  /// The limit on open streams of this client is reached.
  case tooManyStreamsOfClient
  /// The client, or all clients together, hold as much memory as they may.
  case noMemory
  /// The hub has been drained or stopped.
  case draining
}

/// The numbers that all threads of a hub share.
final class HubCounters: Sendable {
  private let streams = Atomic<Int>(0)
  private let pending = Atomic<Int>(0)
  private let lagging = Atomic<Int>(0)
  /// The durations for which streams lagged.
  let lagDurations = DurationHistogram()
  /// The number of streams of each client. Accessed when a stream opens and ends, never by events.
  private let shares: Locked<FairShares<ClientAddress>>

  /// Creates counts of 0. At most `streams.maximum` streams are open, `streams.perAddress` of one client.
  init(_ limits: ServerLimits) {
    shares = Locked(FairShares(ShareLimit(total: limits.streams, perClient: limits.streamsPerAddress)))
  }

  var openStreams: Int { streams.load(ordering: .acquiring) }

  var pendingBytes: Int { pending.load(ordering: .relaxed) }

  var laggingStreams: Int { lagging.load(ordering: .acquiring) }

  /// Counts a new stream of a client. Throws if the client's share, or the total, is used up.
  fileprivate func openStream(for client: ClientAddress) throws(StreamHubError) {
    switch shares.withLock({ $0.take(1, for: client) }) {
    case .perClient: throw .tooManyStreamsOfClient
    case .total: throw .tooManyStreams
    case nil: streams.wrappingAdd(1, ordering: .acquiringAndReleasing)
    }
  }

  /// Stops counting a stream that has ended.
  func closeStream(of client: ClientAddress) {
    streams.wrappingSubtract(1, ordering: .acquiringAndReleasing)
    shares.withLock { $0.release(1, of: client) }
  }

  func addPending(_ byteCount: Int) {
    pending.wrappingAdd(byteCount, ordering: .relaxed)
  }

  func addLagging(_ count: Int) {
    lagging.wrappingAdd(count, ordering: .acquiringAndReleasing)
  }
}
