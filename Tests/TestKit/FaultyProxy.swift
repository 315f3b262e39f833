import Foundation
import Glibc
import Support

/// A TCP proxy to a port of this machine that fails as networks do, when it is told to: it refuses connections, breaks
/// them off, stops carrying bytes in one direction, or loses one request or its answer. It ends when nothing holds it
/// any more.
package final class FaultyProxy: Sendable {
  /// Which way bytes go.
  package enum Direction: Hashable, Sendable, CaseIterable {
    /// From those that connect to the port behind the proxy.
    case toTarget
    /// Back to them.
    case fromTarget
  }

  /// What is lost of a request.
  package enum Loss: Hashable, Sendable {
    /// The request: the target never gets it, and the connection is broken off.
    case request
    /// Its answer: the target has carried it out.
    case answer
    /// Nothing but time: the target gets it when the trap's action has returned.
    case time
  }

  /// What becomes of a connection on which an answer was lost.
  package enum Ending: Hashable, Sendable, CaseIterable {
    /// It is broken off.
    case reset
    /// It stays as it is, and carries nothing back any more.
    case silence
  }

  /// A request of which something is to be lost: whatever has this text in it.
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

  /// Where it is entered.
  package let port: UInt16
  private let answerMark: [UInt8]
  private let state: Locked<State>

  /// Carries what comes in to a port of 127.0.0.1, where nothing needs to listen yet. An answer is lost once it has
  /// `answerMark` in it; by default from its first byte on.
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

  /// The address of a server of HTTP behind it.
  package var url: String { "http://127.0.0.1:\(port)" }

  // MARK: Connections

  /// Leads to another port from now on, and breaks off the connections to the one before.
  package func lead(to target: UInt16) {
    state.withLock { $0.target = target }
    resetAll()
  }

  /// Breaks off every connection and refuses new ones.
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

  /// Stops carrying bytes in a direction, for connections of now and later ones: what is sent waits, nothing is reset,
  /// and neither end is told.
  package func cut(_ direction: Direction) { state.withLock { _ = $0.cut.insert(direction) } }

  /// Carries bytes both ways again, with all that has waited; or, `resetting`, breaks off all connections, whose
  /// waiting bytes are lost.
  package func mend(resetting: Bool = false) {
    if resetting { resetAll() }
    state.withLock { $0.cut = [] }
  }

  /// Loses something of the next request that has `text` in what is sent at a time, on any connection. `action` is
  /// called when it is lost, before the client can know.
  package func lose(
    _ loss: Loss, of text: String, ending: Ending = .reset, _ action: @escaping @Sendable () -> Void = {}
  ) {
    state.withLock { $0.trap = Trap(text: Array(text.utf8), loss: loss, ending: ending, action: action) }
  }

  /// Loses nothing of requests that have not come yet.
  package func loseNothing() { state.withLock { $0.trap = nil } }

  /// Of how many requests something was lost, or is about to be.
  package var lossCount: Int { state.withLock { $0.lossCount } }

  private static func carry(_ connection: ProxiedConnection, _ answerMark: [UInt8], _ state: Locked<State>) {
    for direction in Direction.allCases {
      Thread.detachNewThread {
        pump(connection, direction, answerMark, state)
        if connection.end() { state.withLock { $0.connections[ObjectIdentifier(connection)] = nil } }
      }
    }
  }

  /// Carries bytes one way until there are no more; whatever comes while the way is cut waits, the end too.
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

  /// The trap for the request that is about to be carried, which catches no other then.
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
  /// Why its next answer is lost; nil where that goes through.
  let lost = Locked<FaultyProxy.Trap?>(nil)
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
