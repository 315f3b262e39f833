import Dispatch
import HTTPServer
import Locking

/// Where streams wait to be opened whose beginning takes work: a crowd that comes back, or many different live queries.
///
/// On the threads of requests they would hold up every other request, and all at once they would take every core from
/// the writer. Here one after the other is opened, in the order of their coming, on a thread of its own.
final class OpeningQueue: Sendable {
  private let queue: DispatchQueue
  private let limit: Int
  private let readiness: Readiness
  private let waiting = Locked(0)

  /// A queue of at most so many.
  init(label: String, limit: Int, readiness: Readiness) {
    queue = DispatchQueue(label: label, qos: .utility)
    self.limit = limit
    self.readiness = readiness
  }

  /// Answers with a stream that waits for its turn to be opened; with `overloaded` where too many wait already.
  func response(_ open: @escaping @Sendable () throws(Problem) -> EventStream) -> HandlerResponse {
    .deferred { completion in
      guard self.enter() else {
        return completion.respond(Problem(.overloaded, "too many streams wait to be opened; try again").response)
      }
      self.queue.async {
        self.complete(completion, with: open)
        self.waiting.withLock { $0 -= 1 }
      }
    }
  }

  private func enter() -> Bool {
    waiting.withLock { waiting in
      guard waiting < limit else { return false }
      waiting += 1
      return true
    }
  }

  private func complete(_ completion: Completion, with open: () throws(Problem) -> EventStream) {
    // A crowd that came and went must not be worked for.
    guard !completion.isAbandoned else {
      return completion.respond(Problem(.overloaded, "the client has left").response)
    }
    do throws(Problem) {
      try readiness.check()
      completion.become(try open(), fields: .eventStream)
    } catch {
      completion.respond(error.response)
    }
  }
}
