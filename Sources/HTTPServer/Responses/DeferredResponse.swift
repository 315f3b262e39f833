import CMicrohttpd
import Glibc
import HTTPTypes
import Support

/// The meeting point of a suspended connection and the thread that will have its answer.
///
/// `@unchecked Sendable` for the place, which the lock of `all` guards, and for the pointer: libmicrohttpd keeps a
/// suspended connection until it is resumed, only the call that turns the state to `.responded` resumes it, and that is
/// allowed from any thread.
final class DeferredResponse: @unchecked Sendable {
  /// What comes of the request.
  enum Outcome {
    /// This response.
    case response(Response)
    /// A stream, with the fields of its head.
    case stream(EventStream, HTTPFields)
    /// The request is to be handled once more, with what was found out meanwhile.
    case again((any Sendable)?)
  }

  private enum State {
    case open
    case responded(Outcome)
    case taken
  }

  private let state = Locked(State.open)
  private let connection: OpaquePointer
  private let all: DeferredResponses
  /// The processor time of the client's address; nil while it is alone.
  private let share: TrafficShare?
  /// Where it stands in `all`, whose lock guards it.
  var place = 0

  /// Made for a connection that is about to be suspended; leaves `all` when it is resumed.
  init(connection: OpaquePointer, all: DeferredResponses, share: TrafficShare?) {
    self.connection = connection
    self.all = all
    self.share = share
  }

  /// Counts processor time that other threads have spent on the request, in nanoseconds, for its address.
  func charge(_ nanoseconds: Int) { share?.count(nanoseconds) }

  /// Stores the first answer and resumes the connection, which then belongs to its own thread again. False where there
  /// was one already.
  @discardableResult
  func respond(_ outcome: Outcome) -> Bool {
    let isFirst = state.withLock { state in
      guard case .open = state else { return false }
      state = .responded(outcome)
      return true
    }
    guard isFirst else { return false }
    MHD_resume_connection(connection)
    // Only now: a server that stops waits for this set, and must not find the connection suspended.
    all.remove(self)
    return true
  }

  /// Whether nobody waits for an answer any more: the client has closed its side, or has had its answer, as those have
  /// whose server stops. Any thread.
  var isAbandoned: Bool {
    state.withLock { state in
      // While it is open no thread resumes the connection, so its socket stays open.
      guard case .open = state else { return true }
      return isClosedByPeer(connection)
    }
  }

  /// The answer, once, for the thread of the connection.
  func take() -> Outcome? {
    state.withLock { state in
      guard case .responded(let outcome) = state else { return nil }
      state = .taken
      return outcome
    }
  }
}
