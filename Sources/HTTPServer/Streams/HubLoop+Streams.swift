import CMicrohttpd
import Glibc

/// The life of a stream, from its opening to its end.
extension HubLoop {
  /// How much of what the kernel took it may keep unsent. It asks for more at half of this, which is a slice, so that a
  /// quick reader never waits for it.
  private static let unsentByteCount: Int32 = 131_072

  func open(_ opening: HubOpening) {
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
    if opening.beginning == .behind {
      subscriber.lag = .behind
      worker.counters.addLagging(1)
    }
    if isDraining { end(subscriber, .shutdown, last: delegate.closingEvent(.shutdown)) }
  }

  func attach(_ id: StreamID, _ handoff: SocketHandoff) {
    guard let subscriber = subscribers[id], !subscriber.isAttached, !subscriber.isDoomed,
      epoll.add(handoff.descriptor, number: id.number, forInput: false)
    else {
      Glibc.close(handoff.descriptor)
      handoff.access?.end(.clientGone)
      abandon(id)
      return
    }
    // The channel's events until now belong into the queue, behind the prelude.
    settle(subscriber.channel)
    subscriber.descriptor = handoff.descriptor
    subscriber.isChunked = handoff.isChunked
    subscriber.slot = handoff.slot
    subscriber.access = handoff.access
    setOption(TCP_NODELAY, 1, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    // What waits for a stream is bounded by itself, and one that is slow for a moment should not lag at once.
    setOption(TCP_NOTSENT_LOWAT, 0, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    setOption(SO_KEEPALIVE, 1, level: SOL_SOCKET, of: handoff.descriptor)
    // What a slow reader has not taken shall wait here, where a catch-up can stand for it, rather than in the kernel.
    setOption(TCP_NOTSENT_LOWAT, Self.unsentByteCount, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    // The kernel gives up on a peer that acknowledges nothing, a little later than the sweep does on one that reads
    // nothing: for the kernel they are the same, and which of the two it was should not be a matter of chance.
    let patience = Int32(clamping: (limits.stallSeconds + 5) * 1_000)
    setOption(TCP_USER_TIMEOUT, patience, level: Int32(IPPROTO_TCP), of: handoff.descriptor)
    changeQueue(of: subscriber) { queue in
      queue.begin(with: handoff.head, framed: handoff.isChunked)
      if subscriber.ending != nil, handoff.isChunked { queue.append(EventBytes.terminator) }
    }
    subscriber.progressSecond = now
    touch(subscriber)
  }

  /// The stream's request was never answered with it.
  func abandon(_ id: StreamID) {
    guard let subscriber = subscribers[id], !subscriber.isAttached else { return }
    doom(subscriber, .clientGone)
  }

  func socketChanged(_ id: StreamID, isGone: Bool) {
    guard let subscriber = subscribers[id] else { return }
    if isGone {
      doom(subscriber, subscriber.ending ?? .clientGone)
    } else {
      subscriber.isBlocked = false
      touch(subscriber)
    }
  }

  /// Takes no more events for a stream; once a last one, if given, and the end of the response are sent, it is closed.
  func end(_ subscriber: Subscriber, _ reason: StreamEnd, last event: EventBytes?) {
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

  /// Ends one stream: properly where everything is sent, and at once where something waits.
  func cut(_ id: StreamID) {
    guard let subscriber = subscribers[id] else { return }
    settle(subscriber.channel)
    subscriber.wasDelivered = isDelivered(subscriber)
    if subscriber.isAttached, subscriber.queue.isEmpty, !subscriber.isBlocked {
      end(subscriber, .ended, last: nil)
      flush(subscriber)
    }
    doom(subscriber, .ended)
  }

  /// Whether the other side has acknowledged everything that there was to be sent, and has not reset the connection, as
  /// one does that closes it before it has read everything.
  private func isDelivered(_ subscriber: Subscriber) -> Bool {
    guard subscriber.isAttached, subscriber.queue.isEmpty, subscriber.lag == .none else { return false }
    var count: Int32 = 0
    var error: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    // A socket's unacknowledged bytes: tcp(7), SIOCOUTQ.
    guard ioctl(subscriber.descriptor, UInt(TIOCOUTQ), &count) == 0, count == 0 else { return false }
    return getsockopt(subscriber.descriptor, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0
  }

  func drain() {
    isDraining = true
    for channel in channels.values { settle(channel) }
    let closingEvent = delegate.closingEvent(.shutdown)
    for subscriber in subscribers.values { end(subscriber, .shutdown, last: closingEvent) }
  }

  /// Closes every stream at the end of the slice.
  func cut() {
    for subscriber in subscribers.values { doom(subscriber, subscriber.ending ?? .shutdown) }
  }

  /// Closes a stream at the end of the slice. Whatever it still had to send is lost.
  func doom(_ subscriber: Subscriber, _ reason: StreamEnd) {
    guard !subscriber.isDoomed else { return }
    // Afterwards it does not lag any more.
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

  func close(_ subscriber: Subscriber) {
    subscribers[subscriber.id] = nil
    if subscriber.isAttached {
      epoll.remove(subscriber.descriptor)
      if subscriber.queue.isEmpty {
        shutdown(subscriber.descriptor, Int32(SHUT_WR))
      } else {
        // The kernel would go on offering to a peer that takes nothing what is in its own buffer.
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
