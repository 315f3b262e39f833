package import Logging
package import Support
import Synchronization

/// Sends server-sent events to many clients.
///
/// Every stream belongs to one of a few threads, which alone knows its socket, its channel and what it has still to
/// send. What other threads want goes into that thread's inbox and is done in the order of coming, so that a stream
/// gets its events in the order they were posted.
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

  /// A hub without threads yet: what is opened and posted waits for `start(delegate:)`. The ledger has what waits for
  /// each client; without one it is not bounded in all. Streams are numbered after `numbers`.
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
    workers = (0..<limits.hubThreadCount).map { _ in HubWorker(counters: counters) }
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

  /// Whether this hub has opened a stream, which may have ended. Any thread.
  package func hasOpened(_ id: StreamID) -> Bool {
    id.number > firstID && id.number <= lastID.load(ordering: .relaxed)
  }

  /// The number of streams that have been opened and have not ended. Any thread.
  package var openStreams: Int { counters.openStreams }

  /// The number of bytes that wait in the program, not in the kernel, for slow readers. Any thread.
  package var pendingBytes: Int { counters.pendingBytes }

  /// The number of open streams that miss events, until their owner has given them a catch-up. Any thread.
  package var laggingStreams: Int { counters.laggingStreams }

  /// How long streams lagged, up to their catch-up or their end.
  package var lagDurations: DurationHistogram { counters.lagDurations }

  /// The lowest position of those that the threads have come to: every event posted up to it has been handed to each of
  /// its streams, or the stream was reported as lagging before. 0 while there is no thread, or nothing was posted with
  /// a position; it reaches the last position posted as soon as the threads have nothing more to do, and stays as it is
  /// once the hub has been stopped. Any thread.
  package var settledPosition: UInt64 { workers.map(\.settledPosition).min() ?? 0 }

  /// A name for a stream that will be opened, so that its prelude can speak of it. Any thread.
  package func reserveID() -> StreamID { StreamID(lastID.wrappingAdd(1, ordering: .relaxed).newValue) }

  /// Opens a stream, under a reserved name where one is given, and has it join the channel. `prelude` is the text of
  /// whole events, sent right after the head of the response; whatever is posted for the stream or its channel from now
  /// on comes after it. The stream has to become the answer to a request within `ServerLimits.requestSeconds`.
  /// `client` is who reads it and has it counted, `overflow` says what becomes of it when that is too slow, and
  /// `beginning` what the prelude covers. Any thread.
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

  /// Posts a batch of deliveries, in order, to whatever streams are there by now, and the number that heartbeats name
  /// from then on. Does not wait for any of it. Batches posted by several threads keep some order, the same for all
  /// streams of a hub thread; a caller that needs one order posts from one thread. Any thread.
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

  /// Gives back a stream that was opened but is not the answer to its request after all; it ends as `clientGone`. Any
  /// thread; a stream that has been taken over is left alone.
  package func abandon(_ stream: EventStream) {
    stream.worker.send(.abandon(stream.id))
  }

  /// Sends every stream its closing event and ends it; opens no stream from now on. Streams whose clients have not
  /// taken that event by the deadline are cut. Returns when all have ended, and does not wait for much longer than
  /// that.
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

  /// What closing the sockets may take.
  private static let cuttingDuration = Duration.milliseconds(200)

  private func waitUntilEmpty(until deadline: ContinuousClock.Instant) {
    while counters.openStreams > 0, .now < deadline { SystemThread.pause(milliseconds: 5) }
  }

  /// Ends what is still open, without a closing event, and the threads; returns when they have ended. Further calls of
  /// any method do nothing.
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
