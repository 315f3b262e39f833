// CMicrohttpd for MSG_DONTWAIT: the constants of <sys/socket.h> belong to every module that includes it.

import CMicrohttpd
import Glibc

extension HubLoop {
  func deliver(_ delivery: Delivery) {
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

  /// What has been gathered for the channel goes before anything else that happens to its members.
  func settle(_ channel: Channel?) {
    guard let channel, !channel.batch.isEmpty else { return }
    broadcast(channel)
  }

  /// Sends a channel's batch to every member: the events in one buffer, one call to the kernel for each socket.
  func broadcast(_ channel: Channel) {
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
    // From here on the events are pieces of their own again: a slow reader must not hold the whole batch.
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
    // Only a send that is refused has the kernel say when there is room.
    flush(subscriber)
  }

  /// Adds an event to a stream's own queue, to be sent at the end of the slice; the stream misses it where too much
  /// waits already.
  func enqueue(_ event: EventBytes, for subscriber: Subscriber) {
    guard subscriber.ending == nil, subscriber.lag == .none, event.count > 0 else { return }
    if isTooMuch(event, for: subscriber) {
      flush(subscriber)
      // The socket may have turned out to be gone.
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

  /// Whether the reader may have one more event wait for it, as far as memory goes. What was cut in sending, and the
  /// last event of a stream that ends, are not asked about: the response would be torn.
  func hasMemory(for event: EventBytes, of subscriber: Subscriber) -> Bool {
    do throws(MemoryRefusal) {
      try subscriber.account.grow(
        to: subscriber.queue.byteCount + event.framedCount, of: subscriber.client, in: ledger)
      return true
    } catch {
      return false
    }
  }

  /// Changes a queue, and keeps the count of all pending bytes and the stream's clock right.
  func changeQueue(of subscriber: Subscriber, _ change: (inout PendingQueue) -> Void) {
    let before = subscriber.queue.byteCount
    change(&subscriber.queue)
    worker.counters.addPending(subscriber.queue.byteCount - before)
    if subscriber.queue.byteCount < before { subscriber.account.shrink(to: subscriber.queue.byteCount) }
    if before == 0 { subscriber.progressSecond = now }
  }

  func touch(_ subscriber: Subscriber) {
    guard !subscriber.isTouched else { return }
    subscriber.isTouched = true
    touched.append(subscriber)
  }

  /// Sends what waits for a stream until nothing does, or the socket is full; the end of a stream that is ending.
  func flush(_ subscriber: Subscriber) {
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
