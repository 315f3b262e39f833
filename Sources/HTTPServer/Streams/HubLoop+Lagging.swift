import Support

/// Streams whose readers are slower than their events, from the first event they miss to the catch-up in its place.
extension HubLoop {
  /// A stream cannot get the event of this position, because too much waits for it or the event was lost on its way.
  func miss(_ position: UInt64, by subscriber: Subscriber) {
    guard subscriber.ending == nil, subscriber.lag == .none else { return }
    switch subscriber.overflow {
    case .disconnect:
      changeQueue(of: subscriber) { $0.dropUnsentEvents() }
      end(subscriber, .overflow, last: delegate.closingEvent(.overflow))
    case .coalesce:
      subscriber.lag = .behind
      subscriber.lagBegan = UInt32(truncatingIfNeeded: MonotonicClock.milliseconds)
      worker.counters.addLagging(1)
      delegate.streamLagged(subscriber.id, firstMissed: position)
      // Nothing may wait for it: a lost event finds streams that read all they got.
      touch(subscriber)
    }
  }

  /// Events for these were lost on their way to this thread, the first of them at the position.
  func overflow(_ target: HubTarget, firstLost position: UInt64) {
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

  /// The owner's answer. What has been gathered for the channel was posted before it, and is dropped for this stream.
  func catchUp(_ id: StreamID, _ event: EventBytes?, isLast: Bool) {
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

  /// Everything is sent: the owner of a lagging stream is asked for what it missed, unless it is already about to
  /// answer.
  func askForCatchUp(_ subscriber: Subscriber) {
    guard subscriber.lag == .behind else { return }
    subscriber.lag = .asked
    delegate.streamCaughtUp(subscriber.id)
  }

  /// It gets events again, or is over: an ending stream does not lag.
  func stopLagging(_ subscriber: Subscriber) {
    guard subscriber.lag != .none else { return }
    subscriber.lag = .none
    worker.counters.addLagging(-1)
    let milliseconds = UInt32(truncatingIfNeeded: MonotonicClock.milliseconds) &- subscriber.lagBegan
    worker.counters.lagDurations.record(nanoseconds: Int64(milliseconds) * 1_000_000)
  }
}
