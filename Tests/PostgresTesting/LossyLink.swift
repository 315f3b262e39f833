import Dispatch
import Foundation
import Glibc
import Locking
package import LoopbackKit

/// A way to a database, or to a node, that loses what it is told to lose: a TCP proxy that looks for a text in what is
/// sent.
package final class LossyLink: Sendable {
  /// What is lost when the text comes by; the connection is reset then.
  package enum Loss: Sendable {
    /// The statement, or request: the other side never gets it.
    case request
    /// Its answer: the other side has carried it out.
    case answer
    /// Nothing but time: the other side gets it when the action has returned.
    case time
  }

  private struct Trap: Sendable {
    let text: [UInt8]
    let loss: Loss
    let action: @Sendable () -> Void
  }

  private let trap = Locked<Trap?>(nil)
  private let target: UInt16
  private let listener: LoopbackListener
  /// Where it is entered.
  package var port: UInt16 { listener.port }

  /// A way to a port of this machine that loses nothing yet. An answer is one once it has this text in it; by default
  /// what a database says when it has carried a statement out.
  package init(to target: UInt16, answersEndWith mark: String = "Z") throws(LoopbackError) {
    self.target = target
    listener = try LoopbackListener()
    Thread.detachNewThread { [listener, trap] in
      while let client = listener.accept() {
        guard let upstream = try? WireSocket(port: target) else {
          close(client)
          continue
        }
        let server = dup(upstream.descriptor)
        Thread.detachNewThread {
          Self.carry(client, server, trap, Array(mark.utf8))
          close(client)
          close(server)
        }
      }
    }
  }

  deinit { listener.stop() }

  /// The next time that `text` is sent, by any connection, it is lost, or its answer; `action` is called then, before
  /// the client can know.
  package func lose(_ loss: Loss, of text: String, _ action: @escaping @Sendable () -> Void = {}) {
    trap.withLock { $0 = Trap(text: Array(text.utf8), loss: loss, action: action) }
  }

  /// Carries bytes both ways until one end has enough, or something is lost.
  private static func carry(_ client: Int32, _ server: Int32, _ trap: Locked<Trap?>, _ mark: [UInt8]) {
    var caught: Trap?
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      var entries = [client, server].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
      guard poll(&entries, 2, 120_000) > 0 else { return }
      if entries[0].revents != 0 {
        let count = recv(client, &buffer, buffer.count, 0)
        guard count > 0 else { return }
        caught = caught ?? take(from: trap, buffer[..<count])
        if let caught, caught.loss == .request { return caught.action() }
        if let late = caught, late.loss == .time {
          late.action()
          caught = nil
        }
        guard sendAll(buffer[..<count], to: server) else { return }
      }
      if entries[1].revents != 0 {
        let count = recv(server, &buffer, buffer.count, 0)
        guard count > 0 else { return }
        // The statement is carried out once the database has answered the whole of it.
        if let caught {
          guard buffer[..<count].firstRange(of: mark) != nil else { continue }
          return caught.action()
        }
        guard sendAll(buffer[..<count], to: client) else { return }
      }
    }
  }

  private static func take(from trap: Locked<Trap?>, _ bytes: ArraySlice<UInt8>) -> Trap? {
    trap.withLock { trap in
      guard let found = trap, bytes.firstRange(of: found.text) != nil else { return nil }
      trap = nil
      return found
    }
  }

  private static func sendAll(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }
}
