import Foundation
import KeyValueModel
import Support
import TestKit

/// One reader of a stream during one round, which moves from node to node at random, or stays at one: it must receive
/// what an unbroken stream would have sent, byte for byte.
final class MovingReader: Sendable {
  /// The subscription of a reader.
  enum Subscription: Hashable, Sendable, CaseIterable {
    /// A live query of all registers.
    case query
    /// A computed key and an aggregate over all registers.
    case total
    /// The value of a register that is never deleted.
    case register
    /// The transactions themselves.
    case journal

    /// The target of its request.
    var target: String {
      switch self {
      case .query: "/v1/objects/Register?sort=-value&keys=value"
      case .total: "/v1/objects/Group/all/total,registers.@sum.value?options=old,new"
      case .register: "/v1/objects/Register/s0/value?options=old,new"
      case .journal: "/v1/journal"
      }
    }
  }

  /// All events of one commit.
  struct Told: Hashable, Sendable {
    var revision: Int
    /// The events as received, without the jittered `retry`.
    var text: String
  }

  private struct State {
    var random: SplitMix64
    var told: [Told] = []
    var cursor: Cursor
    var moves = 0
    var isRunning = false
    /// True once the last event of the round has arrived.
    var isDone = false
  }

  let subscription: Subscription
  /// The node that it stays at; nil if it moves.
  private let home: Int?
  private let doors: [NodeDoor]
  private let lastWriter: String
  private let promises: PromiseLedger
  private let state: Locked<State>

  /// Creates a reader of everything after a cursor, up to the commit of `lastWriter`.
  init(
    _ subscription: Subscription, at home: Int?, of doors: [NodeDoor], since cursor: Cursor, upTo lastWriter: String,
    seed: UInt64, promises: PromiseLedger
  ) {
    (self.subscription, self.home, self.doors) = (subscription, home, doors)
    (self.lastWriter, self.promises) = (lastWriter, promises)
    state = Locked(State(random: SplitMix64(seed: seed), cursor: cursor))
  }

  /// The events received, by commit.
  var told: [Told] { state.withLock { $0.told } }
  /// The number of times that it has opened a stream.
  var moves: Int { state.withLock { $0.moves } }
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// The reader's name in messages.
  var name: String {
    "the \(subscription) stream \(home.map { "of node \($0)" } ?? "moved between nodes")"
  }

  /// Reads on a thread of its own until the last event has arrived, or a promise was broken.
  func start() {
    state.withLock { $0.isRunning = true }
    Thread.detachNewThread { [self] in
      while !state.withLock({ $0.isDone }), promises.isFaultless {
        do {
          try read()
        } catch let error as LoopbackError {
          if error.isOfBrokenServer, error.reason != .timedOut { promises.violation("\(name): \(error)") }
        } catch {
          promises.violation("\(name): \(error)")
        }
        usleep(2000)
      }
      state.withLock { $0.isRunning = false }
    }
  }

  /// Opens a stream, and reads until the connection ends or, if the reader moves, it is time to move.
  private func read() throws {
    let (door, seconds, events, cursor) = state.withLock { [doors, home] state in
      let node = home ?? Int.random(in: doors.indices, using: &state.random)
      return (
        doors[node], home == nil ? Double.random(in: 0.02...0.4, using: &state.random) : RegisterClient.patienceSeconds,
        home == nil ? Int.random(in: 1...60, using: &state.random) : .max, state.cursor
      )
    }
    let stream = try WireClient(port: door.port).stream(
      subscription.target, ["Last-Event-ID": cursor.description])
    state.withLock { $0.moves += 1 }
    let deadline = Deadline(seconds: seconds)
    var group: [WireEvent] = []
    var taken = 0
    while taken < events, let event = try stream.block(before: deadline) {
      guard event.data != nil, event.name != "bye" else { continue }
      if event.name == "reset" { throw BrokenPromise("after \(cursor) came \(event.text)") }
      if event.name == "heartbeat" {
        try move(to: event.id)
        continue
      }
      group.append(event.withoutRetry)
      guard event.id != nil else { continue }
      if try take(group) { return }
      group = []
      taken += 1
    }
  }

  private func move(to id: String?) throws {
    guard let cursor = id.flatMap(Cursor.init) else { throw BrokenPromise("a heartbeat without a cursor") }
    try state.withLock { state in
      guard cursor.revision >= state.cursor.revision else {
        throw BrokenPromise("heartbeat \(cursor) came after \(state.cursor)")
      }
      state.cursor = cursor
    }
  }

  /// Takes the events of one commit. Returns true if it is the last of the round.
  private func take(_ group: [WireEvent]) throws -> Bool {
    guard let cursor = group.last?.id.flatMap(Cursor.init) else { throw BrokenPromise("an id that is not a cursor") }
    promises.check(epoch: cursor.epoch, by: name)
    let isLast = group.contains { $0.json["writer"].text == lastWriter }
    try state.withLock { state in
      guard cursor.revision > state.cursor.revision else {
        throw BrokenPromise("\(cursor) came after \(state.cursor)")
      }
      state.cursor = cursor
      state.told.append(Told(revision: cursor.revision, text: group.map(\.text).joined(separator: "\n\n")))
      state.isDone = isLast
    }
    return isLast
  }
}
