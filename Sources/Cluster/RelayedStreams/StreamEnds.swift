import Dispatch
import HTTPServer
import KeywayServer
import Store
import Support

/// What is to be known among nodes of the streams that objects last with: a follower tells the node that it follows
/// which of its own are gone, and the node that takes writes ends what lasts with those of nodes that are gone.
///
/// `state` is all that changes, under its lock, which is held for a look. What waits for another node or for the
/// database does so on `queue`, one at a time.
final class StreamEnds: Sendable {
  private struct State {
    var silences = NodeSilences()
    var isUnderWay = false
    /// When the database was asked last, in milliseconds.
    var asked: UInt64 = 0
    /// What was told last, and when, in milliseconds.
    var told: (streams: [UInt64], at: UInt64)?
  }

  private let directory: NodeDirectory
  private let state = Locked(State())
  private let queue = DispatchQueue(label: "keyway.streams.ends", qos: .utility)
  /// Nanoseconds that only grow.
  private let now: @Sendable () -> UInt64

  /// The most streams that are told of at once.
  static let most = 1_000
  /// After how many milliseconds the same is told again: the other node may have started again, or may not delete the
  /// objects yet.
  private static let pause: UInt64 = 5_000
  /// Between two questions to the database, in milliseconds.
  private static let askingPause: UInt64 = 1_000
  /// A follower that was heard in this time is there: it asks every two seconds.
  private static let presence: UInt64 = 3_000_000_000

  /// For the nodes of a directory; `now` gives nanoseconds that only grow.
  init(_ directory: NodeDirectory, now: @escaping @Sendable () -> UInt64) {
    self.directory = directory
    self.now = now
  }

  private var milliseconds: UInt64 { now() / 1_000_000 }

  // MARK: On a follower

  /// Tells the node that this one follows which streams of this one are gone that objects last with, if there are any.
  func tell(_ leader: Leader, of streams: StreamRegistry, in store: Store) {
    let hub = streams.services.hub
    let gone = StreamLeases(of: store).gone {
      streams.isThere(StreamID($0))
    } isOfThisStart: {
      hub.hasOpened(StreamID($0))
    }
    guard !gone.isEmpty, begins(gone) else { return }
    queue.async { [self] in
      var isTold = true
      for begin in stride(from: 0, to: gone.count, by: Self.most) where isTold {
        isTold = (try? leader.end(streams: gone[begin..<min(begin + Self.most, gone.count)])) != nil
      }
      state.withLock { state in
        state.isUnderWay = false
        if !isTold { state.told = nil }
      }
    }
  }

  private func begins(_ gone: [UInt64]) -> Bool {
    let now = milliseconds
    return state.withLock { state in
      if state.isUnderWay { return false }
      if let told = state.told, told.streams == gone, now - min(now, told.at) < Self.pause { return false }
      state.told = (gone, now)
      state.isUnderWay = true
      return true
    }
  }

  // MARK: On a node that takes writes

  /// Ends what lasts with streams of nodes that have not been heard for as long as streams are kept that were cut.
  func endSilent(in store: Store, _ journal: (any SharedJournal)?) {
    let followers = directory.streamNodes(heardWithin: Self.presence)
    guard let journal else { return end(in: store, present: followers) }
    journal.vouch(for: directory.below)
    guard !StreamLeases(of: store).nodes.isEmpty, beginsAsking() else { return }
    queue.async { [self] in
      // Where the database does not say who is there, nobody is taken to be gone.
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
    let gone = state.withLock { $0.silences.gone(among: nodes, present: present, at: now, after: grace) }
    leases.end(ofNodes: gone)
  }
}

/// For how long other nodes have not been heard: tables without lock and clock.
///
/// Times are milliseconds of a clock that only grows.
struct NodeSilences: Sendable {
  /// Since when nothing was heard of a node.
  private var begins: [UInt64: UInt64] = [:]
  private var last: UInt64?

  /// A node that has not looked for so long was asleep, or could not ask: it says nothing of the others.
  static let pause: UInt64 = 5_000

  /// Of the nodes, those that have been silent for so many milliseconds; `present` are those that were heard just now.
  /// To be called about once a second: silence counts from the first call that has it.
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
