import Foundation
import Locking
import LoopbackKit

/// A TCP proxy to a port of this machine that can be cut, as a network is: all its connections are reset, and new ones
/// refused, until it is mended, on the same port.
final class CuttableProxy: Sendable {
  private struct State {
    var listener: LoopbackListener?
    /// Both ends of each connection under way.
    var descriptors: Set<Int32> = []
  }

  let port: UInt16
  private let target: UInt16
  private let state: Locked<State>

  init(to target: UInt16) throws {
    self.target = target
    let listener = try LoopbackListener()
    port = listener.port
    state = Locked(State(listener: listener))
    serve(listener)
  }

  deinit { cut() }

  var url: String { "http://127.0.0.1:\(port)" }

  /// Cuts every connection and refuses new ones.
  func cut() {
    state.withLock { state in
      state.listener?.stop()
      state.listener = nil
      for descriptor in state.descriptors {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        shutdown(descriptor, Int32(SHUT_RDWR))
      }
    }
  }

  /// Takes connections again.
  func mend() throws {
    var listener: LoopbackListener?
    _ = Deadline().awaits {
      listener = try? LoopbackListener(on: port)
      return listener != nil
    }
    guard let listener else { throw LoopbackError(.connectionRefused, "the proxy cannot listen on port \(port)") }
    state.withLock { $0.listener = listener }
    serve(listener)
  }

  private func serve(_ listener: LoopbackListener) {
    Thread.detachNewThread { [target, state] in
      while let client = listener.accept() {
        guard let upstream = try? WireSocket(port: target) else {
          close(client)
          continue
        }
        let server = dup(upstream.descriptor)
        state.withLock { $0.descriptors.formUnion([client, server]) }
        Thread.detachNewThread {
          Self.pump(client, server)
          state.withLock { $0.descriptors.subtract([client, server]) }
          close(client)
          close(server)
        }
      }
    }
  }

  /// Carries bytes both ways until one end has enough.
  private static func pump(_ client: Int32, _ server: Int32) {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      var entries = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&entries, 2, 120_000) > 0 else { return }
      for (entry, other) in zip(entries, [server, client]) where entry.revents != 0 {
        let count = recv(entry.fd, &buffer, buffer.count, 0)
        guard count > 0 else { return }
        var sent = 0
        while sent < count {
          let written = buffer[sent..<count].withUnsafeBytes {
            send(other, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          guard written > 0 else { return }
          sent += written
        }
      }
    }
  }
}
