internal import Dispatch
internal import Locking

/// Where streams wait to be opened whose beginning takes work: a crowd that comes back, or many different live queries.
///
/// On the threads of requests they would hold up everybody else, and all at once they would take every core from the writer.
/// Here one after the other is opened, in the order of their coming, on a thread of its own.
package final class OpeningQueue: Sendable {
  private let queue: DispatchQueue
  private let limit: Int
  private let waiting = Locked(0)

  /// A queue of at most so many.
  package init(label: String, limit: Int) {
    queue = DispatchQueue(label: label, qos: .utility)
    self.limit = limit
  }

  /// How many wait or are being opened.
  package var count: Int { waiting.withLock { $0 } }

  /// Has `open` called in its turn. False where too many wait already; then it is never called.
  package func submit(_ open: @escaping @Sendable () -> Void) -> Bool {
    let isTaken = waiting.withLock { waiting in
      guard waiting < limit else { return false }
      waiting += 1
      return true
    }
    guard isTaken else { return false }
    queue.async { [waiting] in
      open()
      waiting.withLock { $0 -= 1 }
    }
    return true
  }
}
