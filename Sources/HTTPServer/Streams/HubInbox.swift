import Glibc
import Support
import Synchronization

/// The commands that wait for a hub thread. Without any input or output of its own.
///
/// Bounded: where more than `byteLimit` bytes of events wait, the target of a further event loses it, and its streams
/// are lagging or end as overflowed, once the thread comes to the place in the order where the loss began. What ends a
/// stream or answers for what it missed is never lost, nor counted: there is one for each stream, nothing would repeat
/// it, and answers that displaced events would only be followed by further answers.
struct HubInbox {
  /// What the sender of a command has to do about the thread.
  enum Wake {
    case needed
    case unneeded
  }

  private let byteLimit: Int
  private var commands: [HubCommand] = []
  private var byteCount = 0
  private var losing: Set<HubTarget> = []
  /// Whether the thread sleeps until it is woken.
  private(set) var isAsleep = false
  private var isClosed = false

  init(byteLimit: Int) {
    self.byteLimit = byteLimit
  }

  /// Adds what is not an event. `nil` once the inbox is closed: the command has no effect.
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
      // From here on the stream can miss something again, and has to hear of it like one that is opened here. Whose
      // channel it is in only the thread knows; the other streams of a target do not mind hearing of a loss twice.
      if isLast { losing.removeAll() }
    }
  }

  /// The heartbeats behind this command name the position.
  mutating func append(position: UInt64) {
    guard !isClosed else { return }
    if case .position = commands.last { commands.removeLast() }
    commands.append(.position(position))
  }

  /// Whether the thread sleeps although there is something for it to do; it is counted as awake from then on.
  mutating func wake() -> Wake {
    guard isAsleep, !commands.isEmpty else { return .unneeded }
    isAsleep = false
    return .needed
  }

  /// Gives the thread everything that waits for the empty array it brings. If there is nothing, it may go to sleep and
  /// will be woken.
  mutating func take(into backlog: inout [HubCommand]) {
    assert(backlog.isEmpty)
    swap(&commands, &backlog)
    byteCount = 0
    losing.removeAll()
    isAsleep = backlog.isEmpty
  }

  /// Nothing is taken any more; gives what had been.
  mutating func close() -> [HubCommand] {
    isClosed = true
    defer { commands = [] }
    return commands
  }
}

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

/// What a hub thread is told, in order.
enum HubCommand: Sendable {
  case open(HubOpening)
  case attach(StreamID, SocketHandoff)
  case abandon(StreamID)
  case deliver(Delivery)
  /// Events for these were lost, because the thread is too far behind; the first of them at the position.
  case overflow(HubTarget, firstLost: UInt64)
  case position(UInt64)
  case drain
  /// Streams that have not ended are closed as they are.
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

/// What a hub thread is told of a stream that it is to have.
struct HubOpening: Sendable {
  let id: StreamID
  /// Who reads it.
  let client: ClientAddress
  /// The text of whole events, sent before anything that is posted.
  let prelude: EventBytes
  /// Whose events it gets besides its own.
  let channel: ChannelID?
  /// What becomes of it when its reader is too slow.
  let overflow: OverflowPolicy
  /// What the prelude covers.
  var beginning = StreamBeginning.posted
  /// What the ledger has for the prelude.
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
