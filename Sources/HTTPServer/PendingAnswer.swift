import CMicrohttpd
import Locking

/// The meeting point of a suspended connection and the thread that will have its answer.
///
/// `@unchecked Sendable` for the pointer alone: libmicrohttpd keeps a suspended connection until it is resumed, only the
/// call that turns the state to `.answered` resumes it, and resuming is allowed from any thread.
final class PendingAnswer: @unchecked Sendable {
  private enum State {
    case open
    case answered(Response)
    case taken
  }

  private let state = Locked(State.open)
  private let connection: OpaquePointer
  private let all: PendingAnswers

  /// Made for a connection that is about to be suspended; leaves `all` when it is resumed.
  init(connection: OpaquePointer, all: PendingAnswers) {
    self.connection = connection
    self.all = all
  }

  /// Stores the first answer and resumes the connection, which then belongs to its own thread again.
  func respond(_ response: Response) {
    let isFirst = state.withLock { state in
      guard case .open = state else { return false }
      state = .answered(response)
      return true
    }
    guard isFirst else { return }
    MHD_resume_connection(connection)
    // Only now: a server that stops waits for this set, and must not find the connection suspended.
    all.remove(self)
  }

  /// The answer, once, for the thread of the connection.
  func take() -> Response? {
    state.withLock { state in
      guard case .answered(let response) = state else { return nil }
      state = .taken
      return response
    }
  }
}
