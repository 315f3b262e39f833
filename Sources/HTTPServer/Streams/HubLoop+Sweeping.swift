/// What happens once a second, for the sake of time passing.
extension HubLoop {
  func sweepIfDue() {
    let second = MonotonicClock.seconds
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
        // A lagging stream gets none: the position would stand for what it has missed.
        let position = subscriber.channel?.position ?? position
        let event = heartbeats[position] ?? delegate.heartbeat(at: position)
        heartbeats[position] = event
        enqueue(event, for: subscriber)
      }
    }
    shrink()
    if memoryTrim?.isDue(worker.counters.openStreams) == true { SystemAllocator.giveBack() }
  }

  /// Dictionaries only grow by themselves.
  private func shrink() {
    if subscribers.capacity > 4 * subscribers.count + 64 {
      subscribers = Dictionary(uniqueKeysWithValues: subscribers.map { ($0.key, $0.value) })
    }
    if channels.capacity > 4 * channels.count + 64 {
      channels = Dictionary(uniqueKeysWithValues: channels.map { ($0.key, $0.value) })
    }
  }
}
