import Glibc
import Support
import TestKit

/// The one client that attacks: its requests come from an address of its own, and it keeps sockets open, at most so
/// many. Any thread.
final class Neighbour: Sendable {
  /// The address that it comes from; the others come from 127.0.0.1.
  static let source = "127.0.0.2"
  /// How long an answer may take.
  private static let patienceSeconds = 20.0

  private struct State {
    var tally = NeighbourTally()
    var held: [Int32] = []
    var isOver = false
  }

  /// The server, from its own address.
  let address: SocketAddress
  /// The epoch of the server's store.
  let epoch: String
  private let maximumHeld: Int
  private let state = Locked(State())

  /// A client that keeps at most so many sockets open.
  init(port: UInt16, epoch: String, maximumHeld: Int) {
    (address, self.epoch, self.maximumHeld) = (SocketAddress(port: port, from: Self.source), epoch, maximumHeld)
  }

  /// Whether the attack is to end.
  var isOver: Bool { state.withLock { $0.isOver } }

  /// What came of it so far.
  var tally: NeighbourTally { state.withLock { $0.tally } }

  /// Ends the attack, and closes what is kept open.
  func end() {
    let held = state.withLock { state in
      state.isOver = true
      defer { state.held = [] }
      return state.held
    }
    for descriptor in held { NeighbourConnection.reset(descriptor) }
  }

  /// Sends a request, reads its answer and throws it away; gives the status, nil where there was none.
  @discardableResult
  func send(_ request: WireRequest) -> Int? {
    let status = try? connection().exchange(request, before: Deadline(seconds: Self.patienceSeconds)) { isOver }
    state.withLock { $0.tally.count(status) }
    return status
  }

  /// Sends bytes on a connection of their own and keeps that open, unread. Where as many are kept as may be, the oldest
  /// is closed. `answers` says whether the status of the answer is awaited first.
  func hold(_ bytes: [UInt8], answers: Bool, receiveBufferBytes: Int32? = nil) {
    var status: Int? = 200
    do {
      let connection = try connection(receiveBufferBytes)
      do {
        try connection.send(bytes, before: Deadline(seconds: 2))
      } catch let error as LoopbackError where error.reason == .timedOut {
        // The server leaves the rest where it is: with the kernel.
      }
      if answers { status = try connection.status(before: Deadline(seconds: Self.patienceSeconds)) { isOver } }
      if status == 200, let descriptor = connection.kept() { keep(descriptor) }
    } catch {
      status = nil
    }
    state.withLock { [status] in $0.tally.count(status) }
  }

  /// Opens a stream and keeps it, of which only the head is read.
  func holdStream(_ target: String, receiveBufferBytes: Int32? = 4_096) {
    let request = WireRequest("GET", target, ["Accept": "text/event-stream"])
    hold(Array(request.text(to: address).utf8), answers: true, receiveBufferBytes: receiveBufferBytes)
  }

  /// How many sockets are kept open.
  var heldCount: Int { state.withLock { $0.held.count } }

  private func keep(_ descriptor: Int32) {
    let surplus = state.withLock { state -> Int32? in
      guard !state.isOver else { return descriptor }
      state.held.append(descriptor)
      return state.held.count > maximumHeld ? state.held.removeFirst() : nil
    }
    if let surplus { NeighbourConnection.reset(surplus) }
  }

  private func connection(_ receiveBufferBytes: Int32? = nil) throws -> NeighbourConnection {
    do {
      return try NeighbourConnection(address, receiveBufferBytes: receiveBufferBytes)
    } catch {
      // A server that takes no connection, or a machine without ports: nothing is gained by asking a million times.
      usleep(2_000)
      throw error
    }
  }
}
