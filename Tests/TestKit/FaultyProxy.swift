import Foundation
import Glibc
import Support

/// A TCP proxy to a port of this machine that fails on command as networks do: it refuses connections, resets them,
/// stops carrying bytes in one direction, or loses one request or its response. It ends with its last reference.
package final class FaultyProxy: Sendable {
  /// The direction of bytes.
  package enum Direction: Hashable, Sendable, CaseIterable {
    /// From the clients to the port behind the proxy.
    case toTarget
    /// Back to the clients.
    case fromTarget
  }

  /// The part of a request that is lost.
  package enum Loss: Hashable, Sendable {
    /// The request: the target never receives it, and the connection is reset.
    case request
    /// The response: the target has carried the request out.
    case answer
    /// Only time: the target receives the request once the trap's action has returned.
    case time
  }

  /// The fate of a connection on which a response was lost.
  package enum Ending: Hashable, Sendable, CaseIterable {
    /// It is reset.
    case reset
    /// It stays open, and carries nothing back any more.
    case silence
  }

  /// A trap for the next request that contains this text.
  fileprivate struct Trap: Sendable {
    let text: [UInt8]
    let loss: Loss
    let ending: Ending
    let action: @Sendable () -> Void
  }

  private struct State {
    /// Nil while connections are refused.
    var listener: LoopbackListener?
    var target: UInt16
    var cut: Set<Direction> = []
    var trap: Trap?
    var lossCount = 0
    var connections: [ObjectIdentifier: ProxiedConnection] = [:]
    var isClosed = false
  }

  /// The port that it listens on.
  package let port: UInt16
  private let answerMark: [UInt8]
  private let state: Locked<State>

  /// Creates a proxy to a port of 127.0.0.1, where nothing needs to listen yet. A response is lost once it contains
  /// `answerMark`; by default from its first byte on.
  package init(to target: UInt16, answerMark: String = "") throws(LoopbackError) {
    let listener = try LoopbackListener()
    port = listener.port
    self.answerMark = Array(answerMark.utf8)
    state = Locked(State(listener: listener, target: target))
    serve(listener)
  }

  deinit {
    state.withLock { $0.isClosed = true }
    refuse()
  }

  /// The address of an HTTP server behind it.
  package var url: String { "http://127.0.0.1:\(port)" }

  // MARK: Connections

  /// Leads to another port from now on, and resets the connections to the former one.
  package func lead(to target: UInt16) {
    state.withLock { $0.target = target }
    resetAll()
  }

  /// Resets every connection and refuses new ones.
  package func refuse() {
    state.withLock { state in
      state.listener?.stop()
      state.listener = nil
    }
    resetAll()
  }

  /// Takes connections again after `refuse`, on the same port.
  package func accept() throws(LoopbackError) {
    var listener: LoopbackListener?
    _ = Deadline().awaits {
      listener = try? LoopbackListener(on: port)
      return listener != nil
    }
    guard let listener else { throw LoopbackError(.connectionRefused, "the proxy cannot listen on port \(port)") }
    state.withLock { $0.listener = listener }
    serve(listener)
  }

  private func resetAll() {
    for connection in state.withLock({ Array($0.connections.values) }) { connection.reset() }
  }

  private func serve(_ listener: LoopbackListener) {
    Thread.detachNewThread { [state, answerMark] in
      while let client = listener.accept() {
        guard let upstream = try? WireSocket(port: state.withLock({ $0.target })) else {
          close(client)
          continue
        }
        let connection = ProxiedConnection(client: client, server: dup(upstream.descriptor))
        let isWanted = state.withLock { state in
          guard state.listener === listener else { return false }
          state.connections[ObjectIdentifier(connection)] = connection
          return true
        }
        if isWanted { Self.carry(connection, answerMark, state) } else { connection.reset() }
      }
    }
  }

  // MARK: Bytes

  /// Stops carrying bytes in a direction, for present and later connections: the bytes wait, no connection is reset,
  /// and neither end notices.
  package func cut(_ direction: Direction) { state.withLock { _ = $0.cut.insert(direction) } }

  /// Carries bytes both ways again, including those that waited. With `resetting`, resets all connections, whose
  /// waiting bytes are lost.
  package func mend(resetting: Bool = false) {
    if resetting { resetAll() }
    state.withLock { $0.cut = [] }
  }

  /// Loses a part of the next request that has `text` in one read, on any connection. `action` is called at the loss,
  /// before the client can notice it.
  package func lose(
    _ loss: Loss, of text: String, ending: Ending = .reset, _ action: @escaping @Sendable () -> Void = {}
  ) {
    state.withLock { $0.trap = Trap(text: Array(text.utf8), loss: loss, ending: ending, action: action) }
  }

  /// Removes the trap: later requests lose nothing.
  package func loseNothing() { state.withLock { $0.trap = nil } }

  /// The number of requests that lost a part, or are about to.
  package var lossCount: Int { state.withLock { $0.lossCount } }

  private static func carry(_ connection: ProxiedConnection, _ answerMark: [UInt8], _ state: Locked<State>) {
    for direction in Direction.allCases {
      Thread.detachNewThread {
        pump(connection, direction, answerMark, state)
        if connection.end() { state.withLock { $0.connections[ObjectIdentifier(connection)] = nil } }
      }
    }
  }

  /// Carries bytes one way until their end. Bytes and the end wait while the direction is cut.
  private static func pump(
    _ connection: ProxiedConnection, _ direction: Direction, _ answerMark: [UInt8], _ state: Locked<State>
  ) {
    let (source, target) =
      direction == .toTarget ? (connection.client, connection.server) : (connection.server, connection.client)
    var buffer = [UInt8](repeating: 0, count: 65_536)
    var isOpen = true
    while isOpen {
      let count = recv(source, &buffer, buffer.count, 0)
      while state.withLock({ !$0.isClosed && $0.cut.contains(direction) }) { usleep(1000) }
      guard count > 0 else { break }
      let bytes = buffer[..<count]
      switch direction {
      case .toTarget:
        if let trap = spring(bytes, state) {
          if trap.loss == .answer { connection.lost.withLock { $0 = trap } } else { trap.action() }
          if trap.loss == .request { return connection.reset() }
        }
      case .fromTarget:
        if let trap = connection.lost.withLock({ $0 }) {
          guard bytes.firstRange(of: answerMark) != nil || answerMark.isEmpty else { continue }
          trap.action()
          if trap.ending == .reset { return connection.reset() }
          continue
        }
      }
      isOpen = send(bytes, to: target)
    }
    shutdown(target, Int32(SHUT_WR))
  }

  /// Removes and returns the trap for the request in these bytes; nil if there is none.
  private static func spring(_ bytes: ArraySlice<UInt8>, _ state: Locked<State>) -> Trap? {
    state.withLock { state in
      guard let trap = state.trap, bytes.firstRange(of: trap.text) != nil else { return nil }
      state.trap = nil
      state.lossCount += 1
      return trap
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

/// One connection through a proxy: both of its sockets, closed when neither direction is carried any more.
private final class ProxiedConnection: Sendable {
  let client: Int32
  let server: Int32
  /// The trap that loses its next response; nil if that goes through.
  let lost = Locked<FaultyProxy.Trap?>(nil)
  private let carried = Locked(2)

  init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }

  deinit {
    close(client)
    close(server)
  }

  /// Ends one direction. Returns true if both have ended.
  func end() -> Bool {
    carried.withLock { carried in
      carried -= 1
      return carried == 0
    }
  }

  /// Resets it for both ends.
  func reset() {
    for descriptor in [client, server] {
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
      shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }
}
