import Glibc
import HTTPServer
import KeyValueModel
import KeywayServer
import Support

/// Relays streams of other nodes to clients that connected to this one: reads their events on one thread, and makes the
/// hub send them.
///
/// A stream is managed by its own node; here it is only bytes. A client that reads too slowly is sent `bye`, reason
/// `overflow`, and reconnects with its last id. No event is sent before this node has reached its revision, so that the
/// node's later answers are not older.
///
/// `state` is guarded by its lock, which is held only briefly, and is the innermost lock.
final class StreamRelay: Sendable {
  /// A command to the thread.
  fileprivate enum Command {
    case add(StreamID, any NodeStream, PassedEvents, MemoryReservation?)
    case remove(StreamID)
    case stop
  }

  private struct State {
    /// The client of each relayed stream.
    var streams: [StreamID: ClientAddress] = [:]
    var shares: FairShares<ClientAddress>
    var commands: [Command] = []
    var thread: SystemThread?
    var isStopped = false
  }

  private let hub: StreamHub
  private let present: @Sendable () -> Revision
  private let wake: WakeDescriptor?
  private let state: Locked<State>

  /// Creates a relay within the limits of a node; `present` returns the revision that this node has reached.
  init(_ hub: StreamHub, _ limits: ClusterOptions.ForwardingLimits, present: @escaping @Sendable () -> Revision) {
    self.hub = hub
    self.present = present
    let limit = ShareLimit(total: limits.streams, perClient: limits.streamsPerClient)
    state = Locked(State(shares: FairShares(limit)))
    wake = WakeDescriptor()
  }

  deinit { stop() }

  /// The number of relayed streams.
  var count: Int { state.withLock { $0.streams.count } }

  /// Returns the channel of a relayed stream. Each has a channel of its own, so that heartbeats have the id of its last
  /// event.
  static func channel(of id: StreamID) -> ChannelID { ChannelID(1 << 63 | id.number) }

  /// Relays a stream that the hub has opened for a client; `events` were read so far from its source. Returns false if
  /// the client's share of the streams is used up, or the relay has stopped.
  func add(
    _ id: StreamID, for client: ClientAddress, _ source: any NodeStream, _ events: PassedEvents,
    _ reservation: MemoryReservation?
  ) -> Bool {
    guard let wake else { return false }
    let isAdded = state.withLock { state in
      guard !state.isStopped else { return false }
      if state.thread == nil {
        let loop = (hub: hub, present: present)
        state.thread = SystemThread { [weak self] in
          RelayLoop(loop.hub, wake, loop.present) { self?.takeCommands() ?? [.stop] }.run()
        }
      }
      guard state.thread != nil, state.shares.take(1, for: client) == nil else { return false }
      state.streams[id] = client
      state.commands.append(.add(id, source, events, reservation))
      return true
    }
    if isAdded { wake.wake() }
    return isAdded
  }

  /// Handles the end of a stream, which need not be a relayed one.
  func streamEnded(_ id: StreamID) {
    let wasThere = state.withLock { state in
      guard let client = state.streams.removeValue(forKey: id) else { return false }
      state.shares.release(1, of: client)
      state.commands.append(.remove(id))
      return true
    }
    if wasThere { wake?.wake() }
  }

  /// Handles that this node has reached a revision: events held back for it can be sent.
  func reached(_ revision: Revision) {
    if count > 0 { wake?.wake() }
  }

  /// Releases all streams and ends the thread.
  func stop() {
    let thread = state.withLock { state in
      state.isStopped = true
      state.commands.append(.stop)
      defer { state.thread = nil }
      return state.thread
    }
    wake?.wake()
    thread?.join()
  }

  private func takeCommands() -> [Command] {
    state.withLock { state in
      defer { state.commands = [] }
      return state.commands
    }
  }
}

/// The loop of the relay's thread: owns the connections to the other nodes, and shares no state with other threads.
private final class RelayLoop {
  private struct Passed {
    let source: any NodeStream
    var events: PassedEvents
    let reservation: MemoryReservation?
    /// The revision of the last event that was relayed.
    var revision: Revision
    /// Events of revisions that this node has not reached. Nothing more is read from the source meanwhile.
    var held: [UInt8] = []
    /// True once the other node has ended the stream.
    var isFinished = false
  }

  private let hub: StreamHub
  private let wake: WakeDescriptor
  private let present: () -> Revision
  private let takeCommands: () -> [StreamRelay.Command]
  private var streams: [StreamID: Passed] = [:]
  private var hasStopped = false

  /// Creates a loop that a descriptor wakes.
  init(
    _ hub: StreamHub, _ wake: WakeDescriptor, _ present: @escaping () -> Revision,
    takeCommands: @escaping () -> [StreamRelay.Command]
  ) {
    self.hub = hub
    self.wake = wake
    self.present = present
    self.takeCommands = takeCommands
  }

  /// Runs until it receives `stop`.
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
        isFinished: source.isFinished)
      finish(id)
    case .remove(let id): streams[id] = nil
    case .stop: hasStopped = true
    }
  }

  /// Waits for input or a wake-up, and reads from the sources that have data.
  private func wait() {
    let ids = streams.filter { $0.value.held.isEmpty && !$0.value.isFinished }.map(\.key)
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
        stream.isFinished = stream.source.isFinished
        stream.held = try stream.events.take(bytes[...])
        release(id, &stream)
      }
      try reserve(stream)
    } catch {
      // Complete events were relayed; the client reconnects with its last id.
      stream.isFinished = true
    }
    streams[id] = stream
    finish(id)
  }

  /// Accounts for the memory of events that are incomplete or held back.
  private func reserve(_ stream: Passed) throws(NodeFault) {
    do throws(MemoryRefusal) {
      try stream.reservation?.resize(to: stream.events.pendingBytes + stream.held.count)
    } catch {
      throw NodeFault("not enough memory for an event of the stream")
    }
  }

  /// Sends the held events whose revisions this node has reached meanwhile.
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

  /// Ends a stream whose node has ended it, once all its events were sent.
  private func finish(_ id: StreamID) {
    guard let stream = streams[id], stream.isFinished, stream.held.isEmpty else { return }
    streams[id] = nil
    hub.post([.endStream(id, nil)], position: nil)
  }
}

/// Splits the bytes of another node's stream into complete events, so that no event of this node gets into the middle
/// of one.
struct PassedEvents {
  /// The last id among the returned events; before the first id, the position that the stream resumes from, or nil.
  private(set) var cursor: Cursor?
  private let limit: Int
  /// The received part of the next event.
  private var pending: [UInt8] = []

  /// Creates a splitter for events of at most `limit` bytes, of a stream that resumes from `cursor` if it is not nil.
  init(limit: Int, after cursor: Cursor? = nil) {
    self.limit = limit
    self.cursor = cursor
  }

  /// The revision of `cursor`; 0 if that is nil.
  var revision: Revision { cursor?.revision ?? 0 }

  /// The number of bytes held of an incomplete event.
  var pendingBytes: Int { pending.count }

  /// Adds the next bytes of the stream, and returns the events that are complete. Throws if an event is too long.
  mutating func take(_ bytes: ArraySlice<UInt8>) throws(NodeFault) -> [UInt8] {
    // The end of an event may be split between two pieces.
    let unseen = max(0, pending.count - 1)
    pending.append(contentsOf: bytes)
    var end = pending.count
    while end >= unseen + 2, pending[end - 1] != Self.lineFeed || pending[end - 2] != Self.lineFeed { end -= 1 }
    guard end >= unseen + 2 else {
      guard pending.count <= limit else { throw NodeFault("an event of the stream has more than \(limit) bytes") }
      return []
    }
    let events = Array(pending[..<end])
    pending.removeFirst(end)
    cursor = Self.lastCursor(in: events) ?? cursor
    return events
  }

  private static let lineFeed = UInt8(ascii: "\n")
  private static let idField = Array("id: ".utf8)

  /// Returns the number of bytes of the leading complete events whose revisions are not after `revision`, and the last
  /// revision among them; nil if they have no id.
  static func prefix(of events: [UInt8], notAfter revision: Revision) -> (count: Int, last: Revision?) {
    var (count, last): (Int, Revision?) = (0, nil)
    while count < events.count {
      var end = count + 1
      while end < events.count, events[end] != lineFeed || events[end - 1] != lineFeed { end += 1 }
      let event = events[count..<min(end + 1, events.count)]
      if let found = lastCursor(in: Array(event))?.revision {
        guard found <= revision else { break }
        last = found
      }
      count = event.endIndex
    }
    return (count, last)
  }

  /// Returns the cursor in the last `id:` line; nil if there is no such line.
  private static func lastCursor(in events: [UInt8]) -> Cursor? {
    var end = events.count
    while end > 0 {
      let start = events[..<(end - 1)].lastIndex(of: lineFeed).map { $0 + 1 } ?? 0
      let line = events[start..<end]
      if line.starts(with: idField) {
        return Cursor(String(decoding: line.dropFirst(idField.count).dropLast(), as: UTF8.self))
      }
      end = start
    }
    return nil
  }
}
