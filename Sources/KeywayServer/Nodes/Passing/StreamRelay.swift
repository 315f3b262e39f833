import HTTPServer
import KeyValueModel
import Support

/// Sends on the streams of other nodes that clients came to here: reads their events on one thread, and has the hub
/// send them.
///
/// A stream's own node looks after it; here it is bytes. A client that reads too slowly is sent `bye`, reason
/// `overflow`, and comes back with its last id. No event leaves before this node has come to its revision, so that what
/// it answers next is not older.
///
/// `state` is guarded by its lock, which is held for a look, and taken inside every other.
final class StreamRelay: Sendable {
  /// What the thread is to do.
  enum Command {
    case add(StreamID, any NodeStream, PassedEvents, MemoryReservation?)
    case remove(StreamID)
    case stop
  }

  private struct State {
    /// The client of each stream that is sent on.
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

  /// Creates a relay within the limits of a node; `present` gives how far this node has come.
  init(_ hub: StreamHub, _ limits: Node.ForwardingLimits, present: @escaping @Sendable () -> Revision) {
    self.hub = hub
    self.present = present
    let limit = ShareLimit(total: limits.streams, perClient: limits.streamsPerClient)
    state = Locked(State(shares: FairShares(limit)))
    wake = WakeDescriptor()
  }

  deinit { stop() }

  /// How many streams are sent on.
  var count: Int { state.withLock { $0.streams.count } }

  /// The channel of a stream that is sent on, which counts for itself: heartbeats have the id of its last event.
  static func channel(of id: StreamID) -> ChannelID { ChannelID(1 << 63 | id.number) }

  /// Sends a stream on that the hub has opened for a client, from a source of which `events` were read so far. False if
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

  /// A stream has ended, perhaps one that is sent on.
  func streamEnded(_ id: StreamID) {
    let wasThere = state.withLock { state in
      guard let client = state.streams.removeValue(forKey: id) else { return false }
      state.shares.giveBack(1, of: client)
      state.commands.append(.remove(id))
      return true
    }
    if wasThere { wake?.wake() }
  }

  /// This node has come to a revision: what was held back for that can leave.
  func reached(_ revision: Revision) {
    if count > 0 { wake?.wake() }
  }

  /// Lets go of all streams.
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
