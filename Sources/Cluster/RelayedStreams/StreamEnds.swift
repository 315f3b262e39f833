import Dispatch
import HTTPServer
import KeywayServer
import Store
import Support

/// Exchanges news about ended streams between nodes, for objects whose lifetime is bound to a stream: a follower tells
/// its leader which of its own streams are gone, and the node that takes writes deletes the objects bound to streams of
/// nodes that are gone.
///
/// `state` holds all mutable state; its lock is held only briefly. Calls that block on another node or on the database
/// run on `queue`, one at a time.
final class StreamEnds: Sendable {
  private struct State {
    var liveness = PeerLiveness()
    var isUnderWay = false
    /// The time of the last query to the database, in milliseconds.
    var asked: UInt64 = 0
    /// The streams in the last report to the leader, and its time in milliseconds.
    var lastReport: (streams: [UInt64], at: UInt64)?
  }

  private let directory: NodeDirectory
  private let state = Locked(State())
  private let queue = DispatchQueue(label: "keyway.streams.ends", qos: .utility)
  /// Returns monotonic time in nanoseconds.
  private let now: @Sendable () -> UInt64

  /// The maximum number of streams in one report.
  static let most = 1_000
  /// The time after which the same report is repeated, in milliseconds: the leader may have restarted, or could not
  /// delete the objects yet.
  private static let pause: UInt64 = 5_000
  /// The minimum time between two queries to the database, in milliseconds.
  private static let askingPause: UInt64 = 1_000
  /// A follower that made a request within this time, in nanoseconds, is present: it makes one every two seconds.
  private static let presence: UInt64 = 3_000_000_000

  /// Creates an instance for the nodes of a directory; `now` returns monotonic time in nanoseconds.
  init(_ directory: NodeDirectory, now: @escaping @Sendable () -> UInt64) {
    self.directory = directory
    self.now = now
  }

  private var milliseconds: UInt64 { now() / 1_000_000 }

  // MARK: On a follower

  /// Reports to the leader which streams of this node are gone that objects are bound to, if there are any.
  func report(to leader: Leader, of streams: StreamRegistry, in store: Store) {
    let hub = streams.services.hub
    let gone = StreamLeases(of: store).gone {
      streams.exists(StreamID($0))
    } isOfThisStart: {
      hub.hasOpened(StreamID($0))
    }
    guard !gone.isEmpty, begins(gone) else { return }
    queue.async { [self] in
      var isReported = true
      for begin in stride(from: 0, to: gone.count, by: Self.most) where isReported {
        isReported = (try? leader.end(streams: gone[begin..<min(begin + Self.most, gone.count)])) != nil
      }
      state.withLock { state in
        state.isUnderWay = false
        if !isReported { state.lastReport = nil }
      }
    }
  }

  private func begins(_ gone: [UInt64]) -> Bool {
    let now = milliseconds
    return state.withLock { state in
      if state.isUnderWay { return false }
      if let last = state.lastReport, last.streams == gone, now - min(now, last.at) < Self.pause { return false }
      state.lastReport = (gone, now)
      state.isUnderWay = true
      return true
    }
  }

  // MARK: On a node that takes writes

  /// Deletes the objects that are bound to streams of nodes which have been silent for as long as disconnected streams
  /// are kept.
  func endSilent(in store: Store, _ journal: (any SharedJournal)?) {
    let followers = directory.streamNodes(activeWithin: Self.presence)
    guard let journal else { return end(in: store, present: followers) }
    journal.vouch(for: directory.below)
    guard !StreamLeases(of: store).nodes.isEmpty, beginsAsking() else { return }
    queue.async { [self] in
      // If the database does not say which nodes are present, none is taken to be gone.
      if let peers = try? journal.nodes() {
        end(in: store, present: followers.union(peers.map { StreamNumbers.node(at: $0) }))
      }
      state.withLock { $0.isUnderWay = false }
    }
  }

  private func beginsAsking() -> Bool {
    let now = milliseconds
    return state.withLock { state in
      guard !state.isUnderWay, now - min(now, state.asked) >= Self.askingPause else { return false }
      (state.isUnderWay, state.asked) = (true, now)
      return true
    }
  }

  private func end(in store: Store, present: Set<UInt64>) {
    let (leases, now) = (StreamLeases(of: store), milliseconds)
    let (nodes, grace) = (leases.nodes, leases.grace)
    let gone = state.withLock { $0.liveness.gone(among: nodes, present: present, at: now, after: grace) }
    leases.end(ofNodes: gone)
  }
}

/// The times since which other nodes have been silent: tables without lock and clock.
///
/// Times are milliseconds of a monotonic clock.
struct PeerLiveness: Sendable {
  /// The time since which each node has been silent.
  private var begins: [UInt64: UInt64] = [:]
  private var last: UInt64?

  /// The longest time between two checks, in milliseconds. After a longer one this node was suspended, or could not
  /// query the database, and knows nothing about the others: all counts start again.
  static let pause: UInt64 = 5_000

  /// Returns the nodes that have been silent for `silence` milliseconds; `present` are the nodes that were heard just
  /// now. Call it about once a second: silence counts from the first call in which a node is absent.
  mutating func gone(
    among nodes: Set<UInt64>, present: Set<UInt64>, at now: UInt64, after silence: UInt64
  ) -> Set<UInt64> {
    if let last, now - min(now, last) > Self.pause { begins = [:] }
    last = now
    let silent = nodes.subtracting(present)
    begins = begins.filter { silent.contains($0.key) }
    return silent.filter { node in
      let begin = begins[node] ?? now
      begins[node] = begin
      return now - min(now, begin) >= silence
    }
  }
}
