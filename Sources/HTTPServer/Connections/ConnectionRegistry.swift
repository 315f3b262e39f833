// CMicrohttpd for MSG_DONTWAIT: the constants of <sys/socket.h> belong to every module that includes it.

import CMicrohttpd
import Glibc
import Support
import Synchronization

/// The connections that libmicrohttpd has, for the sake of those that are too slow: its own timeout starts again with
/// every byte. A stop waits for those that are busy.
///
/// A registered descriptor is open, because libmicrohttpd closes it only after the connection was removed here, under
/// the same lock under which it may be shut down.
final class ConnectionRegistry: Sendable {
  private let connections = Locked([Connection]())

  func insert(_ connection: Connection) {
    connections.withLock { connections in
      connection.registryIndex = connections.count
      connections.append(connection)
    }
  }

  func remove(_ connection: Connection) {
    connections.withLock { connections in
      let index = connection.registryIndex
      guard connections.indices.contains(index), connections[index] === connection else { return }
      connections.swapAt(index, connections.count - 1)
      connections.removeLast()
      if index < connections.count { connections[index].registryIndex = index }
      if connections.capacity > 4 * connections.count + 64 { connections = Array(connections[...]) }
    }
  }

  /// Whether a request is at the handler, or its answer on the way.
  var isBusy: Bool { connections.withLock { $0.contains(where: \.isBusy) } }

  /// Shuts down every connection on which a request has not been answered to its end, and gives their number.
  func cutBusy() -> Int {
    connections.withLock { connections in
      var count = 0
      for connection in connections where connection.isBusy {
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
        count += 1
      }
      return count
    }
  }

  /// Has libmicrohttpd look again at connections whose request, or whose client's end, lies there unread, and gives
  /// their number.
  ///
  /// 0.9.75 takes 128 events from epoll at a time, and where it gets exactly that many, waits for more before it serves
  /// any: 128 clients that have all sent a request and wait for the answer then wait for each other. And where the end
  /// of a client's side came together with its request, one event was for both: after the answer it reads no more, and
  /// the connection would stay half closed (CLOSE_WAIT) until it is idle for too long. One more signal ends that, and
  /// costs a connection that is about to be served a look in vain. One that waits for its turn with the pacer is left
  /// there: thousands of them would be looked at in vain before any other is served.
  func wakeUnread() -> Int {
    forEach { connection in
      guard !connection.isBusy, !connection.waitsForTurn.load(ordering: .relaxed), connection.hasUnread else {
        return false
      }
      Self.signal(connection)
      return true
    }
  }

  /// How many connections are looked at together, while none can be opened or closed.
  private static let slice = 64

  /// Looks at the connections, a slice at a time so that the threads that open and close some never wait long, and
  /// gives for how many `body` says yes. Where one is closed meanwhile, one may be left out.
  private func forEach(_ body: (Connection) -> Bool) -> Int {
    var (count, start) = (0, 0)
    while true {
      let isOver = connections.withLock { connections in
        for connection in connections[min(start, connections.count)...].prefix(Self.slice) where body(connection) {
          count += 1
        }
        start += Self.slice
        return start >= connections.count
      }
      if isOver { return count }
      // A mutex goes to the thread that asks next, which would be this one again and again.
      usleep(50)
    }
  }

  /// Has libmicrohttpd look again at those of these connections that it still has.
  func wake(_ woken: [Connection]) {
    connections.withLock { connections in
      for connection in woken {
        let index = connection.registryIndex
        guard connections.indices.contains(index), connections[index] === connection else { continue }
        Self.signal(connection)
      }
    }
  }

  /// Has the kernel signal once more what lies unread: setting the low-water mark to what it is does that
  /// (`tcp_set_rcvlowat`).
  private static func signal(_ connection: Connection) {
    setOption(SO_RCVLOWAT, 1, level: SOL_SOCKET, of: connection.descriptor)
  }

  /// Shuts down every connection whose client let its deadline pass, and gives their number; libmicrohttpd then reads
  /// the end of the stream and closes them. One that waits for its turn to be read is not late.
  func cutOverdue(now milliseconds: Int64) -> Int {
    forEach { connection in
      guard connection.deadlineMilliseconds <= milliseconds, !connection.waitsForTurn.load(ordering: .relaxed) else {
        return false
      }
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      connection.clearDeadline()
      return true
    }
  }
}
