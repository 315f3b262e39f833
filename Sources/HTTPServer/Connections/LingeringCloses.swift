import Glibc
import Support

/// The sockets of requests that were refused before they were complete. Closing such a socket while the client still
/// sends makes the kernel reset it, and the client may lose the response with the reason; so its data is read and
/// discarded for a while (RFC 9112 §9.6).
///
/// Bounded: if there are more than `capacity` sockets, the oldest, which has had the most time, is closed immediately.
final class LingeringCloses: Sendable {
  private struct Entry {
    let descriptor: Int32
    let start: Int64
    /// True if the response was sent before; otherwise libmicrohttpd needs some time to send it.
    let isAnswered: Bool
    var isFinished = false
  }

  private static let capacity = 64
  private static let patienceMilliseconds: Int64 = 3_000
  /// The time after which libmicrohttpd has sent the response and closed its own descriptor.
  private static let answerMilliseconds: Int64 = 20

  private let entries = Locked<[Entry]>([])

  /// True if there is nothing to do. Any thread.
  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Keeps a connection's socket open with a duplicate of its descriptor. Any thread.
  func add(duplicateOf descriptor: Int32, isAnswered: Bool = false, now: Int64) {
    entries.withLock { entries in
      if entries.count == Self.capacity { close(entries.removeFirst().descriptor) }
      let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
      if duplicate >= 0 { entries.append(Entry(descriptor: duplicate, start: now, isAnswered: isAnswered)) }
    }
  }

  /// Reads the data that has arrived, and closes the sockets whose clients have finished or run out of time. One thread
  /// at a time; others may add sockets in the meantime.
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

  /// Closes all sockets immediately.
  func closeAll() {
    entries.withLock { entries in
      for entry in entries { close(entry.descriptor) }
      entries = []
    }
  }

  /// Discards the data that can be read without waiting, at most 256 KiB, since a client may send as fast as it is
  /// read. Returns true if the client has closed its side.
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
