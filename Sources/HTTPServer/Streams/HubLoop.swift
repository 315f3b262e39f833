import CMicrohttpd
import Glibc

/// One hub thread at work: its streams, their sockets, and nothing that any other thread can reach.
///
/// It turns in slices: some commands are taken in order, what they add for a channel is gathered and sent to each
/// member at once, and then the kernel is asked which sockets have room again or have lost their peer. No stream is
/// closed in the middle: it is doomed, and closed at the end of the slice.
final class HubLoop {
  /// A slice ends after so many bytes of events, so that sockets with room again are served in between; it is also what
  /// is given to one socket at once.
  static let sliceByteCount = 65_536
  private static let wakeNumber: UInt64 = 0

  let worker: HubWorker
  let delegate: any StreamHubDelegate
  let limits: ServerLimits
  let ledger: MemoryLedger
  let epoll: Epoll
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: HubLoop.sliceByteCount, alignment: 16)

  var subscribers: [StreamID: Subscriber] = [:]
  var channels: [ChannelID: Channel] = [:]
  var touchedChannels: [Channel] = []
  var touched: [Subscriber] = []
  var doomed: [Subscriber] = []
  var position: UInt64 = 0
  var now = MonotonicClock.seconds
  var isDraining = false
  var memoryTrim: MemoryTrim?

  private var backlog: [HubCommand] = []
  private var nextInBacklog = 0
  private var hasStopped = false
  /// Everything said is done: what the inbox gave last was nothing.
  private var isCaughtUp = false

  /// Takes over a set from `makeEpoll(for:)`. One thread of a hub gives memory back for all.
  init(
    worker: HubWorker, epoll: Epoll, delegate: any StreamHubDelegate, limits: ServerLimits, ledger: MemoryLedger,
    trimsMemory: Bool
  ) {
    self.worker = worker
    self.epoll = epoll
    self.delegate = delegate
    self.limits = limits
    self.ledger = ledger
    memoryTrim = trimsMemory ? MemoryTrim(leastFall: 500) : nil
  }

  /// A set that the worker's commands wake, or `nil` where the system has no descriptor left; made before the thread,
  /// so that a failure can be thrown.
  static func makeEpoll(for worker: HubWorker) -> Epoll? {
    guard let epoll = Epoll(), let wake = worker.wakeDescriptor,
      epoll.add(wake.descriptor, number: wakeNumber, forInput: true)
    else { return nil }
    return epoll
  }

  deinit {
    buffer.deallocate()
  }

  /// Works until it is told to stop, and closes everything then.
  func run() {
    while !hasStopped {
      takeSlice()
      settleAll()
      worker.settle(at: position)
      let timeout: Int32 = isCaughtUp ? Int32(1_000 - MonotonicClock.milliseconds % 1_000) : 0
      epoll.wait(milliseconds: timeout) { number, isGone in
        if number != Self.wakeNumber { socketChanged(StreamID(number), isGone: isGone) }
      }
      settleAll()
      sweepIfDue()
    }
    closeDown()
  }

  private func takeSlice() {
    if nextInBacklog == backlog.count {
      // A burst's memory is not kept for the next.
      backlog.removeAll(keepingCapacity: backlog.capacity <= 4_096)
      nextInBacklog = 0
      worker.take(into: &backlog)
      isCaughtUp = backlog.isEmpty
    }
    var byteCount = 0
    while nextInBacklog < backlog.count, byteCount < Self.sliceByteCount, !hasStopped {
      let command = backlog[nextInBacklog]
      nextInBacklog += 1
      if case .deliver(let delivery) = command { byteCount += delivery.byteCount }
      perform(command)
    }
  }

  private func perform(_ command: HubCommand) {
    switch command {
    case .open(let opening): open(opening)
    case .attach(let id, let handoff): attach(id, handoff)
    case .abandon(let id): abandon(id)
    case .deliver(let delivery): deliver(delivery)
    case .overflow(let target, let position): overflow(target, firstLost: position)
    case .position(let position): self.position = position
    case .drain: drain()
    case .cut: cut()
    case .stop: hasStopped = true
    }
  }

  /// Sends what is gathered, and closes what is doomed.
  private func settleAll() {
    for channel in touchedChannels { broadcast(channel) }
    touchedChannels.removeAll(keepingCapacity: touchedChannels.capacity <= 4_096)
    for subscriber in touched {
      subscriber.isTouched = false
      flush(subscriber)
    }
    touched.removeAll(keepingCapacity: touched.capacity <= 4_096)
    // What the delegate does on hearing of an end comes through the inbox; this list does not grow meanwhile.
    for subscriber in doomed { close(subscriber) }
    doomed.removeAll(keepingCapacity: doomed.capacity <= 4_096)
  }

  private func closeDown() {
    cut()
    settleAll()
    let rest = backlog[nextInBacklog...] + worker.close()
    for command in rest {
      switch command {
      case .attach(_, let handoff):
        Glibc.close(handoff.descriptor)
        handoff.access?.end(.shutdown)
      case .open(let opening):
        worker.counters.closeStream(of: opening.client)
        delegate.streamEnded(opening.id, .shutdown, isDelivered: false)
      default: break
      }
    }
  }
}
