import Glibc
import Support

/// Sockets of requests that were refused before all of them came. Closing such a socket while the client still sends
/// makes the kernel reset it, and the client may lose the answer that says why; so what it sends is read and thrown
/// away for a while (RFC 9112 §9.6).
///
/// Bounded: of more than `capacity` sockets at a time the oldest, which has had the longest time, is closed as it is.
final class LingeringCloses: Sendable {
  private struct Entry {
    let descriptor: Int32
    let start: Int64
    /// Whether the answer was sent before; libmicrohttpd needs some time for its own.
    let isAnswered: Bool
    var isFinished = false
  }

  private static let capacity = 64
  private static let patienceMilliseconds: Int64 = 3_000
  /// By then libmicrohttpd has sent the answer and closed its own descriptor.
  private static let answerMilliseconds: Int64 = 20

  private let entries = Locked<[Entry]>([])

  /// Whether there is anything to do. Any thread.
  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Keeps a connection's socket open behind its own descriptor. Any thread.
  func add(duplicateOf descriptor: Int32, isAnswered: Bool = false, now: Int64) {
    entries.withLock { entries in
      if entries.count == Self.capacity { close(entries.removeFirst().descriptor) }
      let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      if duplicate >= 0 { entries.append(Entry(descriptor: duplicate, start: now, isAnswered: isAnswered)) }
    }
  }

  /// Reads what has come, and closes the sockets whose clients have finished or had their time. One thread at a time;
  /// the others may add more meanwhile.
  func drain(now: Int64) {
    var drained = entries.withLock { entries in
      defer { entries = [] }
      return entries
    }
    guard !drained.isEmpty else { return }
    for index in drained.indices {
      let age = now - drained[index].start
      let isAnswered = drained[index].isAnswered || age >= Self.answerMilliseconds
      if isAnswered, !drained[index].isAnswered { shutdown(drained[index].descriptor, Int32(SHUT_WR)) }
      let isAtEnd = Self.discard(drained[index].descriptor)
      drained[index].isFinished = age >= Self.patienceMilliseconds || (isAtEnd && isAnswered)
      if drained[index].isFinished { close(drained[index].descriptor) }
    }
    drained.removeAll { $0.isFinished }
    entries.withLock { entries in
      entries.insert(contentsOf: drained, at: 0)
      while entries.count > Self.capacity { close(entries.removeFirst().descriptor) }
    }
  }

  /// Closes everything at once.
  func closeAll() {
    entries.withLock { entries in
      for entry in entries { close(entry.descriptor) }
      entries = []
    }
  }

  /// Throws away what can be read without waiting, at most a quarter of a megabyte of it, since a client may send as
  /// fast as it is read; says whether the client has closed its side.
  private static func discard(_ descriptor: Int32) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
      for _ in 0..<4 {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
        if count > 0 { continue }
        return count == 0 || (errno != EAGAIN && errno != EINTR)
      }
      return false
    }
  }
}
