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

  let byteLimit: Int
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
