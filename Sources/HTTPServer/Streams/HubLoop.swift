import Glibc
import Support

/// The work of one hub thread: its streams and their sockets, none of which any other thread can access.
///
/// It runs in slices: some commands are executed in order, the events that they add for a channel are collected and
/// sent to each member at once, and then the kernel is asked which sockets have room again or have lost their peer. No
/// stream is closed in the middle: it is marked as doomed, and closed at the end of the slice.
final class HubLoop {
  /// The number of bytes of events after which a slice ends, so that sockets with room again are served in between;
  /// also the size of one write to a socket.
  private static let sliceByteCount = 65_536
  private static let wakeNumber: UInt64 = 0

  private let worker: HubWorker
  private let delegate: any StreamHubDelegate
  private let limits: ServerLimits
  private let ledger: MemoryLedger
  private let epoll: Epoll
  private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: HubLoop.sliceByteCount, alignment: 16)

  private var subscribers: [StreamID: Subscriber] = [:]
  private var channels: [ChannelID: Channel] = [:]
  private var touchedChannels: [Channel] = []
  private var touched: [Subscriber] = []
  private var doomed: [Subscriber] = []
  private var position: UInt64 = 0
  private var now = SystemClock.coarseSeconds
  private var isDraining = false
  private var memoryTrim: MemoryTrim?

  private var backlog: [HubCommand] = []
  private var nextInBacklog = 0
  private var hasStopped = false
  /// True if everything posted has been done: the last exchange with the inbox returned nothing.
  private var isCaughtUp = false

  /// Creates the loop with a set from `makeEpoll(for:)`. One thread of a hub returns free memory to the system for all.
  init(
    worker: HubWorker, epoll: Epoll, delegate: any StreamHubDelegate, limits: ServerLimits, ledger: MemoryLedger,
    trimsMemory: Bool
  ) {
    self.worker = worker
    self.epoll = epoll
    self.delegate = delegate
    self.limits = limits
    self.ledger = ledger
    memoryTrim = trimsMemory ? MemoryTrim(leastChange: 500, countsRises: true) : nil
  }

  /// Returns a set that the worker's commands wake; nil if the system has no descriptor left. Created before the
  /// thread, so that a failure can be thrown.
  static func makeEpoll(for worker: HubWorker) -> Epoll? {
    guard let epoll = Epoll(), let wake = worker.wakeDescriptor,
      epoll.add(wake.descriptor, number: wakeNumber, forInput: true)
    else { return nil }
    return epoll
  }

  deinit {
    buffer.deallocate()
  }

  /// Runs until it receives the command to stop, and then closes everything.
  func run() {
    while !hasStopped {
      takeSlice()
      settleAll()
      worker.settle(at: position)
      let timeout: Int32 = isCaughtUp ? Int32(1_000 - SystemClock.coarseMilliseconds % 1_000) : 0
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
      // The memory of a burst is not kept for the next one.
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

  /// Sends the collected events, and closes the doomed streams.
  private func settleAll() {
    for channel in touchedChannels { broadcast(channel) }
    touchedChannels.removeAll(keepingCapacity: touchedChannels.capacity <= 4_096)
    for subscriber in touched {
      subscriber.isTouched = false
      flush(subscriber)
    }
    touched.removeAll(keepingCapacity: touched.capacity <= 4_096)
    // Commands that the delegate sends on the end of a stream go through the inbox; this list does not grow meanwhile.
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

// MARK: The life of a stream

extension HubLoop {
  /// The number of bytes that the kernel may hold unsent. It asks for more at half of this, which is a slice, so that a
  /// fast reader never waits for it.
  private static let unsentByteCount: Int32 = 131_072

  private func open(_ opening: HubOpening) {
    let subscriber = Subscriber(opening, now: now, attachSeconds: limits.requestSeconds)
    subscribers[opening.id] = subscriber
    changeQueue(of: subscriber) { $0.append(opening.prelude) }
    if let channel = opening.channel {
      let group = channels[channel] ?? Channel(id: channel)
      channels[channel] = group
      settle(group)
      group.join(subscriber)
      switch opening.beginning {
      case .posted: break
      case .position(let position): group.move(to: position)
      case .behind: group.move(to: 0)
      }
    }
    if opening.beginning == .behind { beginLagging(subscriber) }
    if isDraining { end(subscriber, .shutdown, last: delegate.closingEvent(.shutdown)) }
  }

  private func attach(_ id: StreamID, _ handoff: SocketHandoff) {
    guard let subscriber = subscribers[id], !subscriber.isAttached, !subscriber.isDoomed,
      epoll.add(handoff.descriptor, number: id.number, forInput: false)
    else {
      Glibc.close(handoff.descriptor)
      handoff.access?.end(.clientGone)
      abandon(id)
      return
    }
    // The channel's earlier events belong in the queue, after the prelude.
    settle(subscriber.channel)
    subscriber.descriptor = handoff.descriptor
    subscriber.isChunked = handoff.isChunked
    subscriber.slot = handoff.slot
    subscriber.access = handoff.access
    setOption(TCP_NODELAY, 1, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    // The data that waits for a stream is bounded separately, and a stream that is slow for a moment should not lag at
    // once.
    setOption(TCP_NOTSENT_LOWAT, 0, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    setOption(SO_KEEPALIVE, 1, level: SOL_SOCKET, of: handoff.descriptor)
    // Data that a slow reader has not read should wait here, where a catch-up can replace it, rather than in the
    // kernel.
    setOption(TCP_NOTSENT_LOWAT, Self.unsentByteCount, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    // The kernel gives up on a peer that acknowledges nothing slightly later than the sweep does on one that reads
    // nothing: the kernel does not distinguish the two, and the reported reason should not depend on chance.
    let patience = Int32(clamping: (limits.stallSeconds + 5) * 1_000)
    setOption(TCP_USER_TIMEOUT, patience, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    changeQueue(of: subscriber) { queue in
      queue.begin(with: handoff.head, framed: handoff.isChunked)
      if subscriber.ending != nil, handoff.isChunked { queue.append(EventBytes.terminator) }
    }
    subscriber.progressSecond = now
    touch(subscriber)
  }

  /// Ends a stream whose request was never answered with it.
  private func abandon(_ id: StreamID) {
    guard let subscriber = subscribers[id], !subscriber.isAttached else { return }
    doom(subscriber, .clientGone)
  }

  private func socketChanged(_ id: StreamID, isGone: Bool) {
    guard let subscriber = subscribers[id] else { return }
    if isGone {
      doom(subscriber, subscriber.ending ?? .clientGone)
    } else {
      subscriber.isBlocked = false
      touch(subscriber)
    }
  }

  /// Accepts no more events for a stream, and closes it once the last one, if given, and the end of the response are
  /// sent.
  private func end(_ subscriber: Subscriber, _ reason: StreamEnd, last event: EventBytes?) {
    guard subscriber.ending == nil, !subscriber.isDoomed else { return }
    if reason == .overflow || subscriber.lag != .none { subscriber.wasDelivered = false }
    leaveChannel(subscriber)
    stopLagging(subscriber)
    subscriber.ending = reason
    let patience = Int32(clamping: limits.stallSeconds)
    // A stream without a socket is either about to get one, or never will.
    subscriber.deadlineSecond =
      subscriber.isAttached ? now + patience : min(now + (isDraining ? 2 : patience), subscriber.deadlineSecond)
    changeQueue(of: subscriber) { queue in
      if let event { queue.append(event) }
      if subscriber.isAttached, subscriber.isChunked { queue.append(EventBytes.terminator) }
    }
    touch(subscriber)
  }

  /// Ends one stream: properly if everything is sent, and immediately if something waits.
  private func cut(_ id: StreamID) {
    guard let subscriber = subscribers[id] else { return }
    settle(subscriber.channel)
    subscriber.wasDelivered = isDelivered(subscriber)
    if subscriber.isAttached, subscriber.queue.isEmpty, !subscriber.isBlocked {
      end(subscriber, .ended, last: nil)
      flush(subscriber)
    }
    doom(subscriber, .ended)
  }

  /// Returns true if the peer has acknowledged everything that there was to send, and has not reset the connection, as
  /// a peer does that closes it before it has read everything.
  private func isDelivered(_ subscriber: Subscriber) -> Bool {
    guard subscriber.isAttached, subscriber.queue.isEmpty, subscriber.lag == .none else { return false }
    var count: Int32 = 0
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    // The number of unacknowledged bytes of a socket: tcp(7), SIOCOUTQ.
    guard ioctl(subscriber.descriptor, UInt(TIOCOUTQ), &count) == 0, count == 0 else { return false }
    return getsockopt(subscriber.descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0
  }

  private func drain() {
    isDraining = true
    for channel in channels.values { settle(channel) }
    let closingEvent = delegate.closingEvent(.shutdown)
    for subscriber in subscribers.values { end(subscriber, .shutdown, last: closingEvent) }
  }

  /// Closes every stream at the end of the slice.
  private func cut() {
    for subscriber in subscribers.values { doom(subscriber, subscriber.ending ?? .shutdown) }
  }

  /// Closes a stream at the end of the slice. Data that is not sent yet is lost.
  private func doom(_ subscriber: Subscriber, _ reason: StreamEnd) {
    guard !subscriber.isDoomed else { return }
    // Before `stopLagging`, which clears the lag.
    subscriber.wasDelivered = subscriber.wasDelivered ?? isDelivered(subscriber)
    leaveChannel(subscriber)
    stopLagging(subscriber)
    subscriber.isDoomed = true
    subscriber.ending = reason
    doomed.append(subscriber)
  }

  private func leaveChannel(_ subscriber: Subscriber) {
    guard let channel = subscriber.channel else { return }
    channel.leave(subscriber)
    if channel.members.isEmpty { channels[channel.id] = nil }
  }

  private func close(_ subscriber: Subscriber) {
    subscribers[subscriber.id] = nil
    if subscriber.isAttached {
      epoll.remove(subscriber.descriptor)
      if subscriber.queue.isEmpty {
        shutdown(subscriber.descriptor, Int32(SHUT_WR))
      } else {
        // The kernel would keep offering the data in its own buffer to a peer that reads nothing.
        var reset = linger(l_onoff: 1, l_linger: 0)
        setsockopt(subscriber.descriptor, SOL_SOCKET, SO_LINGER, &reset, socklen_t(MemoryLayout<linger>.size))
      }
      Glibc.close(subscriber.descriptor)
      subscriber.descriptor = -1
    }
    worker.counters.addPending(-subscriber.queue.byteCount)
    subscriber.queue = PendingQueue()
    subscriber.account = QueueAccount()
    subscriber.slot = nil
    subscriber.access?.end(subscriber.ending ?? .ended)
    subscriber.access = nil
    worker.counters.closeStream(of: subscriber.client)
    delegate.streamEnded(
      subscriber.id, subscriber.ending ?? .ended, isDelivered: subscriber.wasDelivered ?? false)
  }
}

// MARK: Delivering

extension HubLoop {
  private func deliver(_ delivery: Delivery) {
    switch delivery {
    case .channel(let id, let event):
      guard let channel = channels[id], event.count > 0 else { return }
      if channel.add(event) { touchedChannels.append(channel) }
      if channel.batchByteCount >= Self.sliceByteCount { broadcast(channel) }
    case .stream(let id, let event):
      guard let subscriber = subscribers[id] else { return }
      settle(subscriber.channel)
      enqueue(event, for: subscriber)
    case .endChannel(let id, let event):
      guard let channel = channels[id] else { return }
      settle(channel)
      for subscriber in channel.members { end(subscriber, .ended, last: event) }
    case .endStream(let id, let event):
      guard let subscriber = subscribers[id] else { return }
      settle(subscriber.channel)
      end(subscriber, .ended, last: event)
    case .cutStream(let id): cut(id)
    case .catchUp(let id, let event, let isLast):
      catchUp(id, event, isLast: isLast)
    case .streamMisses(let id, let position): overflow(.stream(id), firstLost: position)
    case .channelMisses(let id, let position): overflow(.channel(id), firstLost: position)
    }
  }

  /// Sends the events collected for the channel before anything else happens to its members.
  private func settle(_ channel: Channel?) {
    guard let channel, !channel.batch.isEmpty else { return }
    broadcast(channel)
  }

  /// Sends a channel's batch to every member: the events in one buffer, with one system call for each socket.
  private func broadcast(_ channel: Channel) {
    let byteCount = channel.batchByteCount
    let batch = channel.takeBatch()
    guard let only = batch.first else { return }
    let framed = (batch.count == 1 ? only.wholeChunk : nil) ?? Self.join(batch, byteCount: byteCount)
    framed.withUnsafeBytes { bytes in
      for subscriber in channel.members {
        if subscriber.isClear {
          send(bytes, of: batch, to: subscriber)
        } else {
          for event in batch { enqueue(event, for: subscriber) }
        }
      }
    }
  }

  private func send(_ bytes: UnsafeRawBufferPointer, of batch: [EventBytes], to subscriber: Subscriber) {
    let result = Glibc.send(subscriber.descriptor, bytes.baseAddress, bytes.count, Self.sendFlags)
    if result > 0 { subscriber.access?.record.byteCount += result }
    if result == bytes.count {
      subscriber.progressSecond = now
      return
    }
    guard result >= 0 || Self.isTemporary(errno) else {
      doom(subscriber, .clientGone)
      return
    }
    // From here on the events are separate pieces again: a slow reader must not keep the whole batch in memory.
    var sent = max(0, result)
    for event in batch {
      let alreadySent = min(sent, event.framedCount)
      sent -= alreadySent
      if alreadySent > 0, alreadySent < event.framedCount {
        changeQueue(of: subscriber) { $0.append(event, alreadySent: alreadySent) }
      } else if alreadySent == 0 {
        enqueue(event, for: subscriber)
      }
    }
    subscriber.progressSecond = now
    // The kernel reports room only after it has refused a send.
    flush(subscriber)
  }

  /// Adds an event to a stream's own queue, to be sent at the end of the slice; the stream misses the event if too much
  /// already waits.
  private func enqueue(_ event: EventBytes, for subscriber: Subscriber) {
    guard subscriber.ending == nil, subscriber.lag == .none, event.count > 0 else { return }
    if isTooMuch(event, for: subscriber) {
      flush(subscriber)
      // The send may have shown that the socket is gone.
      guard subscriber.ending == nil else { return }
      if isTooMuch(event, for: subscriber) {
        miss(event.position, by: subscriber)
        return
      }
    }
    guard hasMemory(for: event, of: subscriber) else { return miss(event.position, by: subscriber) }
    changeQueue(of: subscriber) { $0.append(event) }
    touch(subscriber)
  }

  private func isTooMuch(_ event: EventBytes, for subscriber: Subscriber) -> Bool {
    subscriber.queue.backlogByteCount(adding: event) > limits.pendingBytesPerStream
  }

  /// Returns true if there is memory for one more event to wait for the reader. Not called for a partly sent event or
  /// the last event of a stream that ends: the response would be torn.
  private func hasMemory(for event: EventBytes, of subscriber: Subscriber) -> Bool {
    do throws(MemoryRefusal) {
      try subscriber.account.grow(
        to: subscriber.queue.byteCount + event.framedCount, of: subscriber.client, in: ledger)
      return true
    } catch {
      return false
    }
  }

  /// Changes a queue, and updates the count of all pending bytes and the stream's progress time.
  private func changeQueue(of subscriber: Subscriber, _ change: (inout PendingQueue) -> Void) {
    let before = subscriber.queue.byteCount
    change(&subscriber.queue)
    worker.counters.addPending(subscriber.queue.byteCount - before)
    if subscriber.queue.byteCount < before { subscriber.account.shrink(to: subscriber.queue.byteCount) }
    if before == 0 { subscriber.progressSecond = now }
  }

  private func touch(_ subscriber: Subscriber) {
    guard !subscriber.isTouched else { return }
    subscriber.isTouched = true
    touched.append(subscriber)
  }

  /// Sends a stream's queue until it is empty or the socket is full, and dooms the stream if it is ending and
  /// everything is sent.
  private func flush(_ subscriber: Subscriber) {
    guard subscriber.isAttached, !subscriber.isDoomed, !subscriber.isBlocked else { return }
    while !subscriber.queue.isEmpty {
      let count = subscriber.queue.copy(into: buffer)
      let result = Glibc.send(subscriber.descriptor, buffer.baseAddress, count, Self.sendFlags)
      if result > 0 {
        subscriber.access?.record.byteCount += result
        changeQueue(of: subscriber) { $0.consume(result) }
        subscriber.progressSecond = now
      } else if Self.isTemporary(errno) {
        subscriber.isBlocked = true
        return
      } else {
        doom(subscriber, .clientGone)
        return
      }
    }
    if let ending = subscriber.ending { doom(subscriber, ending) } else { askForCatchUp(subscriber) }
  }

  private static func join(_ batch: [EventBytes], byteCount: Int) -> [UInt8] {
    var joined: [UInt8] = []
    joined.reserveCapacity(byteCount)
    for event in batch { event.append(to: &joined) }
    return joined
  }

  private static var sendFlags: Int32 { Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT) }

  private static func isTemporary(_ error: Int32) -> Bool { error == EAGAIN || error == EINTR || error == ENOBUFS }
}

// MARK: Lagging

/// The streams whose readers are slower than their events, from the first event that they miss to the catch-up in its
/// place.
extension HubLoop {
  /// Handles an event that a stream cannot get, because too much waits for it or the event was lost on its way.
  private func miss(_ position: UInt64, by subscriber: Subscriber) {
    guard subscriber.ending == nil, subscriber.lag == .none else { return }
    switch subscriber.overflow {
    case .disconnect:
      changeQueue(of: subscriber) { $0.dropUnsentEvents() }
      end(subscriber, .overflow, last: delegate.closingEvent(.overflow))
    case .coalesce:
      beginLagging(subscriber)
      delegate.streamLagged(subscriber.id, firstMissed: position)
      // There may be nothing waiting for it: a loss can affect streams that have read everything they got.
      touch(subscriber)
    }
  }

  /// Handles the loss of events for a target on their way to this thread; the first of them has the position.
  private func overflow(_ target: HubTarget, firstLost position: UInt64) {
    switch target {
    case .channel(let id):
      guard let channel = channels[id] else { return }
      settle(channel)
      for subscriber in channel.members { miss(position, by: subscriber) }
    case .stream(let id):
      guard let subscriber = subscribers[id] else { return }
      settle(subscriber.channel)
      miss(position, by: subscriber)
    }
  }

  /// Handles the owner's catch-up. Events collected for the channel were posted before it, and are dropped for this
  /// stream.
  private func catchUp(_ id: StreamID, _ event: EventBytes?, isLast: Bool) {
    guard let subscriber = subscribers[id], subscriber.lag != .none else { return }
    settle(subscriber.channel)
    if let event {
      guard hasMemory(for: event, of: subscriber) else {
        return end(subscriber, .overflow, last: delegate.closingEvent(.overflow))
      }
      changeQueue(of: subscriber) { $0.append(event) }
    }
    if isLast {
      stopLagging(subscriber)
      if let event, let channel = subscriber.channel, channel.position != nil { channel.move(to: event.position) }
    } else {
      subscriber.lag = .behind
    }
    touch(subscriber)
  }

  /// Asks the owner of a lagging stream for the catch-up once everything is sent, unless it has already been asked.
  private func askForCatchUp(_ subscriber: Subscriber) {
    guard subscriber.lag == .behind else { return }
    subscriber.lag = .asked
    delegate.streamCaughtUp(subscriber.id)
  }

  /// Notes that a stream gets no events for the present.
  private func beginLagging(_ subscriber: Subscriber) {
    subscriber.lag = .behind
    subscriber.lagBegan = UInt32(truncatingIfNeeded: SystemClock.coarseMilliseconds)
    worker.counters.addLagging(1)
  }

  /// Ends the lag because the stream gets events again, or ends: an ending stream does not lag.
  private func stopLagging(_ subscriber: Subscriber) {
    guard subscriber.lag != .none else { return }
    subscriber.lag = .none
    worker.counters.addLagging(-1)
    let milliseconds = UInt32(truncatingIfNeeded: SystemClock.coarseMilliseconds) &- subscriber.lagBegan
    worker.counters.lagDurations.record(nanoseconds: Int64(milliseconds) * 1_000_000)
  }
}

// MARK: Sweeping

extension HubLoop {
  /// Does the periodic work once a second: ends streams that are late, and sends heartbeats.
  private func sweepIfDue() {
    let second = SystemClock.coarseSeconds
    guard second != now else { return }
    now = second
    var heartbeats: [UInt64: EventBytes] = [:]
    for subscriber in subscribers.values where !subscriber.isDoomed {
      if !subscriber.isAttached || subscriber.ending != nil {
        if now >= subscriber.deadlineSecond { doom(subscriber, subscriber.ending ?? .clientGone) }
      } else if !subscriber.queue.isEmpty {
        if now - subscriber.progressSecond >= limits.stallSeconds { doom(subscriber, .stalled) }
      } else if limits.lifetimeSeconds > 0, now - subscriber.openedSecond >= limits.lifetimeSeconds {
        end(subscriber, .lifetime, last: delegate.closingEvent(.lifetime))
      } else if subscriber.lag == .none, now - subscriber.progressSecond >= limits.heartbeatSeconds {
        // A lagging stream gets none: the position would cover the events that it has missed.
        let position = subscriber.channel?.position ?? position
        let event = heartbeats[position] ?? delegate.heartbeat(at: position)
        heartbeats[position] = event
        enqueue(event, for: subscriber)
      }
    }
    shrink()
    if memoryTrim?.isDue(worker.counters.openStreams) == true { SystemAllocator.releaseFreeMemory() }
  }

  /// Shrinks the dictionaries, which otherwise only grow.
  private func shrink() {
    if subscribers.capacity > 4 * subscribers.count + 64 {
      subscribers = Dictionary(uniqueKeysWithValues: subscribers.map { ($0.key, $0.value) })
    }
    if channels.capacity > 4 * channels.count + 64 {
      channels = Dictionary(uniqueKeysWithValues: channels.map { ($0.key, $0.value) })
    }
  }
}
