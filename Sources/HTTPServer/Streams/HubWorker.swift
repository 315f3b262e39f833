import Glibc
import Support
import Synchronization

/// What the rest of the program sees of one hub thread: its inbox, and the descriptor that wakes it.
final class HubWorker: Sendable {
  /// What may wait for a thread that is too busy: 64 MiB of events.
  private static let inboxByteLimit = 64 << 20

  let wakeDescriptor: WakeDescriptor?
  let counters: HubCounters
  private let inbox = Locked(HubInbox(byteLimit: HubWorker.inboxByteLimit))

  private let settled = Atomic<UInt64>(0)

  init(counters: HubCounters) {
    wakeDescriptor = WakeDescriptor()
    self.counters = counters
  }

  /// Any thread. `false` once the thread has ended.
  @discardableResult
  func send(_ command: HubCommand) -> Bool {
    guard let wake = inbox.withLock({ $0.append(command) }) else { return false }
    if wake == .needed { wakeDescriptor?.wake() }
    return true
  }

  /// Any thread. Queues those of the deliveries that `isFor` picks, and the position, under one lock. `isIdle` says
  /// that no stream is open: then the thread learns of the position when it wakes for something else, and has settled
  /// it.
  func post(_ batch: [Delivery], position: UInt64?, isIdle: Bool, where isFor: (Delivery) -> Bool) {
    let wake = inbox.withLock { inbox in
      for delivery in batch where isFor(delivery) { inbox.append(delivery) }
      if let position { inbox.append(position: position) }
      guard isIdle, batch.isEmpty, let position, inbox.isAsleep else { return inbox.wake() }
      settle(at: position)
      return .unneeded
    }
    if wake == .needed { wakeDescriptor?.wake() }
  }

  /// Hands a socket to the thread; closes it where the thread has ended.
  func attach(_ id: StreamID, _ handoff: SocketHandoff) {
    guard !send(.attach(id, handoff)) else { return }
    Glibc.close(handoff.descriptor)
    handoff.access?.end(.shutdown)
  }

  /// The last position of which every event before it has been handed on, or dropped and reported. Any thread.
  var settledPosition: UInt64 { settled.load(ordering: .acquiring) }

  /// For the thread itself, at the end of a slice.
  func settle(at position: UInt64) {
    settled.store(position, ordering: .releasing)
  }

  /// For the thread itself: trades its empty backlog for what waits. It may sleep afterwards if that is nothing.
  func take(into backlog: inout [HubCommand]) {
    inbox.withLock { $0.take(into: &backlog) }
  }

  /// For the thread at its end.
  func close() -> [HubCommand] {
    inbox.withLock { $0.close() }
  }
}
