import Glibc
import Support
import Synchronization

/// The commands that wait for a hub thread. Without any input or output of its own.
///
/// Bounded: while more than `byteLimit` bytes of events wait, the target of a further event loses it, and the target's
/// streams lag or end with an overflow once the thread reaches the place in the order where the loss began. Commands
/// that end a stream or catch it up are never lost, nor counted: there is one for each stream, nothing would repeat it,
/// and if they displaced events, that would only cause further ones.
struct HubInbox {
  /// The sender's next step regarding the thread.
  enum Wake {
    case needed
    case unneeded
  }

  private let byteLimit: Int
  private var commands: [HubCommand] = []
  private var byteCount = 0
  private var losing: Set<HubTarget> = []
  /// True while the thread sleeps until it is woken.
  private(set) var isAsleep = false
  private var isClosed = false

  init(byteLimit: Int) {
    self.byteLimit = byteLimit
  }

  /// Adds a command other than a delivery. Returns nil once the inbox is closed, in which case the command has no
  /// effect.
  mutating func append(_ command: HubCommand) -> Wake? {
    guard !isClosed else { return nil }
    if case .open(let opening) = command, let channel = opening.channel { losing.remove(.channel(channel)) }
    commands.append(command)
    return wake()
  }

  /// Adds a delivery; call `wake()` after the last one.
  mutating func append(_ delivery: Delivery) {
    guard !isClosed else { return }
    switch delivery {
    case .channel(_, let event), .stream(_, let event):
      if byteCount <= byteLimit {
        byteCount += delivery.byteCount
        commands.append(.deliver(delivery))
      } else if losing.insert(HubTarget(delivery)).inserted {
        commands.append(.overflow(HubTarget(delivery), firstLost: event.position))
      }
    case .endChannel, .endStream, .cutStream, .streamMisses, .channelMisses:
      commands.append(.deliver(delivery))
    case .catchUp(_, _, let isLast):
      commands.append(.deliver(delivery))
      // From here on the stream can miss something again, and has to be notified like one that is opened here. Only the
      // thread knows which channel it is in; notifying the other streams of a target twice is harmless.
      if isLast { losing.removeAll() }
    }
  }

  /// Sets the position that heartbeats report after this command.
  mutating func append(position: UInt64) {
    guard !isClosed else { return }
    if case .position = commands.last { commands.removeLast() }
    commands.append(.position(position))
  }

  /// Returns `needed` if the thread sleeps although there is a command for it, and counts it as awake from then on.
  mutating func wake() -> Wake {
    guard isAsleep, !commands.isEmpty else { return .unneeded }
    isAsleep = false
    return .needed
  }

  /// Exchanges all waiting commands for the thread's empty array. If there are none, the thread may go to sleep and
  /// will be woken.
  mutating func take(into backlog: inout [HubCommand]) {
    assert(backlog.isEmpty)
    swap(&commands, &backlog)
    byteCount = 0
    losing.removeAll()
    isAsleep = backlog.isEmpty
  }

  /// Closes the inbox, and returns the commands in it.
  mutating func close() -> [HubCommand] {
    isClosed = true
    defer { commands = [] }
    return commands
  }
}

/// The part of a hub thread that the rest of the program sees: its inbox, and the descriptor that wakes it.
final class HubWorker: Sendable {
  /// The maximum size of the events that wait for a busy thread: 64 MiB.
  private static let inboxByteLimit = 64 << 20

  let wakeDescriptor: WakeDescriptor?
  let counters: HubCounters
  private let inbox = Locked(HubInbox(byteLimit: HubWorker.inboxByteLimit))

  private let settled = Atomic<UInt64>(0)

  init(counters: HubCounters) {
    wakeDescriptor = WakeDescriptor()
    self.counters = counters
  }

  /// Queues a command. Any thread. Returns false once the hub thread has ended.
  @discardableResult
  func send(_ command: HubCommand) -> Bool {
    guard let wake = inbox.withLock({ $0.append(command) }) else { return false }
    if wake == .needed { wakeDescriptor?.wake() }
    return true
  }

  /// Queues the deliveries for which `isFor` returns true, and the position, under one lock. Any thread. If no stream
  /// is open (`isIdle`), the thread is not woken for the position alone, which counts as settled immediately.
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

  /// Hands a socket to the thread, or closes it if the thread has ended.
  func attach(_ id: StreamID, _ handoff: SocketHandoff) {
    guard !send(.attach(id, handoff)) else { return }
    Glibc.close(handoff.descriptor)
    handoff.access?.end(.shutdown)
  }

  /// The last position up to which every event has been handed on, or dropped and reported. Any thread.
  var settledPosition: UInt64 { settled.load(ordering: .acquiring) }

  /// Sets the settled position. Called by the thread itself, at the end of a slice.
  func settle(at position: UInt64) {
    settled.store(position, ordering: .releasing)
  }

  /// Exchanges the empty backlog for the waiting commands. If there are none, the thread may sleep afterwards. Called
  /// by the thread itself.
  func take(into backlog: inout [HubCommand]) {
    inbox.withLock { $0.take(into: &backlog) }
  }

  /// Closes the inbox. Called by the thread at its end.
  func close() -> [HubCommand] {
    inbox.withLock { $0.close() }
  }
}

/// A command for a hub thread; commands are executed in order.
enum HubCommand: Sendable {
  case open(HubOpening)
  case attach(StreamID, SocketHandoff)
  case abandon(StreamID)
  case deliver(Delivery)
  /// Events for these streams were lost, because the thread is too far behind; the first of them at the position.
  case overflow(HubTarget, firstLost: UInt64)
  case position(UInt64)
  case drain
  /// Closes the streams that have not ended, without sending anything more.
  case cut
  case stop
}

/// The streams that a delivery is for.
enum HubTarget: Hashable, Sendable {
  case channel(ChannelID)
  case stream(StreamID)

  init(_ delivery: Delivery) {
    switch delivery {
    case .channel(let id, _), .endChannel(let id, _), .channelMisses(let id, _): self = .channel(id)
    case .stream(let id, _), .endStream(let id, _), .cutStream(let id), .catchUp(let id, _, _),
      .streamMisses(let id, _):
      self = .stream(id)
    }
  }
}

/// The parameters of a stream that a hub thread takes over.
struct HubOpening: Sendable {
  let id: StreamID
  /// The client that reads the stream.
  let client: ClientAddress
  /// The text of whole events, sent before anything that is posted.
  let prelude: EventBytes
  /// The channel whose events the stream gets besides its own.
  let channel: ChannelID?
  /// The action if the reader is too slow.
  let overflow: OverflowPolicy
  /// The part of the events that the prelude covers.
  var beginning = StreamBeginning.posted
  /// The reservation for the prelude.
  var reservation: MemoryReservation?
}

/// A socket on its way to the hub thread that will own and close it.
final class SocketHandoff: Sendable {
  let descriptor: Int32
  let isChunked: Bool
  let head: [UInt8]
  let slot: ConnectionSlot
  let access: AccessEntry?

  init(descriptor: Int32, isChunked: Bool, head: [UInt8], slot: ConnectionSlot, access: AccessEntry?) {
    self.descriptor = descriptor
    self.isChunked = isChunked
    self.head = head
    self.slot = slot
    self.access = access
  }
}
