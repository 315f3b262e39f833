import Glibc
import HTTPServer
import KeyValueModel

/// The thread of a relay at work: the connections to the other nodes, and nothing that another thread can reach.
final class RelayLoop {
  private struct Passed {
    let source: any NodeStream
    var events: PassedEvents
    let reservation: MemoryReservation?
    /// The revision of the last event that was sent on.
    var revision: Revision
    /// Events of revisions to which this node has not come yet. Nothing is read meanwhile.
    var held: [UInt8] = []
    /// Whether the other node has sent everything.
    var isOver = false
  }

  private let hub: StreamHub
  private let wake: WakeDescriptor
  private let present: () -> Revision
  private let takeCommands: () -> [StreamRelay.Command]
  private var streams: [StreamID: Passed] = [:]
  private var hasStopped = false

  /// A loop that is woken by a descriptor.
  init(
    _ hub: StreamHub, _ wake: WakeDescriptor, _ present: @escaping () -> Revision,
    takeCommands: @escaping () -> [StreamRelay.Command]
  ) {
    self.hub = hub
    self.wake = wake
    self.present = present
    self.takeCommands = takeCommands
  }

  /// Works until it is told to stop.
  func run() {
    while true {
      wake.reset()
      for command in takeCommands() { perform(command) }
      if hasStopped { return }
      release()
      wait()
    }
  }

  private func perform(_ command: StreamRelay.Command) {
    switch command {
    case .add(let id, let source, let events, let reservation):
      streams[id] = Passed(
        source: source, events: events, reservation: reservation, revision: events.revision,
        isOver: source.isFinished)
      finish(id)
    case .remove(let id): streams[id] = nil
    case .stop: hasStopped = true
    }
  }

  /// Reads from those that have something.
  private func wait() {
    let ids = streams.filter { $0.value.held.isEmpty && !$0.value.isOver }.map(\.key)
    var polled = [pollfd(fd: wake.descriptor, events: Int16(POLLIN), revents: 0)]
    for id in ids {
      guard let stream = streams[id] else { continue }
      polled.append(pollfd(fd: stream.source.descriptor, events: Int16(POLLIN), revents: 0))
    }
    guard poll(&polled, nfds_t(polled.count), -1) > 0 else { return }
    for (index, id) in ids.enumerated() where polled[index + 1].revents != 0 { read(id) }
  }

  private func read(_ id: StreamID) {
    guard var stream = streams.removeValue(forKey: id) else { return }
    do throws(NodeFault) {
      if let bytes = try stream.source.receiveNow() {
        stream.isOver = stream.source.isFinished
        stream.held = try stream.events.take(bytes[...])
        release(id, &stream)
      }
      try reserve(stream)
    } catch {
      // What came whole was sent on; the client comes back with its last id.
      stream.isOver = true
    }
    streams[id] = stream
    finish(id)
  }

  /// An event that is long takes its time to come, and counts meanwhile.
  private func reserve(_ stream: Passed) throws(NodeFault) {
    do throws(MemoryRefusal) {
      try stream.reservation?.resize(to: stream.events.pendingBytes + stream.held.count)
    } catch {
      throw NodeFault("there is no memory for an event of the stream")
    }
  }

  /// Sends what was held back and is not of the future any more.
  private func release() {
    for (id, stream) in streams where !stream.held.isEmpty {
      var stream = stream
      release(id, &stream)
      streams[id] = stream
      finish(id)
    }
  }

  private func release(_ id: StreamID, _ stream: inout Passed) {
    let present = present()
    var (count, last) = (stream.held.count, Optional(stream.events.revision))
    if stream.events.revision > present { (count, last) = PassedEvents.prefix(of: stream.held, notAfter: present) }
    guard count > 0 else { return }
    stream.revision = max(stream.revision, last ?? 0)
    let position = StreamPosition.state(at: stream.revision).rawValue
    let events = EventBytes(Array(stream.held[..<count]), position: position)
    stream.held.removeFirst(count)
    hub.post([.channel(StreamRelay.channel(of: id), events)], position: nil)
  }

  /// Ends a stream whose node has sent everything.
  private func finish(_ id: StreamID) {
    guard let stream = streams[id], stream.isOver, stream.held.isEmpty else { return }
    streams[id] = nil
    hub.post([.endStream(id, nil)], position: nil)
  }
}
