import Foundation
import Glibc
import Locking

/// A TCP proxy to a port of this machine that can stop carrying bytes in one direction, as a network can: what was sent
/// waits, nothing is reset, and neither end is told. It can lose the answer to one request, too. It ends when nothing
/// holds it any more.
package final class OneWayProxy: Sendable {
  /// Which way bytes go.
  package enum Direction: Hashable, Sendable, CaseIterable {
    /// From those that connect to the port behind the proxy.
    case toTarget
    /// Back to them.
    case fromTarget
  }

  /// What becomes of a connection on which an answer was lost.
  package enum Ending: Hashable, Sendable, CaseIterable {
    /// It is broken off.
    case reset
    /// It stays as it is, and carries nothing back any more.
    case silence
  }

  /// A request whose answer is to be lost: whatever has this text in it.
  private struct Trap: Sendable {
    let text: [UInt8]
    let ending: Ending
  }

  private struct State {
    var target: UInt16
    var cut: Set<Direction> = []
    var trap: Trap?
    var lostAnswers = 0
    var connections: [ObjectIdentifier: Connection] = [:]
    var isClosed = false
  }

  /// One connection: both of its sockets, closed when neither direction is carried any more.
  private final class Connection: Sendable {
    let client: Int32
    let server: Int32
    /// What is to become of it at the next answer; nil where that goes through.
    let ending = Locked<Ending?>(nil)
    private let carried = Locked(2)

    init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

    deinit {
      close(client)
      close(server)
    }

    /// One direction has ended; true where both have.
    func end() -> Bool {
      carried.withLock { carried in
        carried -= 1
        return carried == 0
      }
    }

    /// Breaks it off for both ends.
    func reset() {
      for descriptor in [client, server] {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        shutdown(descriptor, Int32(SHUT_RDWR))
      }
    }
  }

  private let listener: LoopbackListener
  private let state: Locked<State>

  /// Carries what comes in to a port of 127.0.0.1, where nothing needs to listen yet.
  package init(to target: UInt16) throws(LoopbackError) {
    listener = try LoopbackListener()
    state = Locked(State(target: target))
    Thread.detachNewThread { [listener, state] in
      while let client = listener.accept() {
        guard let upstream = try? WireSocket(port: state.withLock({ $0.target })) else {
          close(client)
          continue
        }
        Self.carry(Connection(client: client, server: dup(upstream.descriptor)), state)
      }
    }
  }

  deinit {
    listener.stop()
    let connections = state.withLock { state in
      state.isClosed = true
      return Array(state.connections.values)
    }
    for connection in connections { connection.reset() }
  }

  /// Where it is entered.
  package var port: UInt16 { listener.port }

  /// Leads to another port from now on, and breaks off the connections to the one before.
  package func lead(to target: UInt16) {
    let connections = state.withLock { state in
      state.target = target
      return Array(state.connections.values)
    }
    for connection in connections { connection.reset() }
  }

  /// Stops carrying bytes in a direction, for connections of now and later ones.
  package func cut(_ direction: Direction) { state.withLock { _ = $0.cut.insert(direction) } }

  /// Carries bytes both ways again, with all that has waited; or, `resetting`, breaks off all connections, whose
  /// waiting bytes are lost.
  package func mend(resetting: Bool = false) {
    let connections = state.withLock { state in resetting ? Array(state.connections.values) : [] }
    for connection in connections { connection.reset() }
    state.withLock { $0.cut = [] }
  }

  /// The next request with `text` in what is sent at a time, on any connection, gets to the target, and what the target
  /// answers is lost.
  package func loseAnswer(to text: String, _ ending: Ending) {
    state.withLock { $0.trap = Trap(text: Array(text.utf8), ending: ending) }
  }

  /// Loses no answer that has not been asked for yet.
  package func loseNoAnswer() { state.withLock { $0.trap = nil } }

  /// How many answers were lost, or are about to be.
  package var lostAnswers: Int { state.withLock { $0.lostAnswers } }

  private static func carry(_ connection: Connection, _ state: Locked<State>) {
    state.withLock { $0.connections[ObjectIdentifier(connection)] = connection }
    for direction in Direction.allCases {
      Thread.detachNewThread {
        pump(connection, direction, state)
        if connection.end() { state.withLock { $0.connections[ObjectIdentifier(connection)] = nil } }
      }
    }
  }

  /// Carries bytes one way until there are no more; whatever comes while the way is cut waits, the end too.
  private static func pump(_ connection: Connection, _ direction: Direction, _ state: Locked<State>) {
    let (source, target) =
      direction == .toTarget ? (connection.client, connection.server) : (connection.server, connection.client)
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var isOpen = true
    while isOpen {
      let count = recv(source, &buffer, buffer.count, 0)
      while state.withLock({ !$0.isClosed && $0.cut.contains(direction) }) { usleep(1000) }
      guard count > 0 else { break }
      let bytes = buffer[..<count]
      if direction == .toTarget {
        spring(bytes, connection, state)
      } else if let ending = connection.ending.withLock({ $0 }) {
        guard ending == .silence else { return connection.reset() }
        continue
      }
      isOpen = send(bytes, to: target)
    }
    shutdown(target, Int32(SHUT_WR))
  }

  /// Notes of a connection that the answer to what it is about to carry is to be lost, where that is so.
  private static func spring(_ bytes: ArraySlice<UInt8>, _ connection: Connection, _ state: Locked<State>) {
    state.withLock { state in
      guard let trap = state.trap, bytes.firstRange(of: trap.text) != nil else { return }
      state.trap = nil
      state.lostAnswers += 1
      connection.ending.withLock { $0 = trap.ending }
    }
  }

  private static func send(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }
}
