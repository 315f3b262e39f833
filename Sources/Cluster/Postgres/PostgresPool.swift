import Dispatch
import Support

/// A pool of connections to a database, each used by one thread at a time. Any thread may call it.
///
/// `state` holds all mutable state; its lock is never held while waiting for a database.
final class PostgresPool: Sendable {
  private struct State {
    var idle: [PostgresConnection] = []
    /// The generation of the connections. It increases when a connection was lost, since the earlier ones are likely to
    /// be dead too.
    var generation = 0
    var isClosed = false
  }

  /// The address of the database, in libpq's syntax.
  let address: String
  private let state = Locked(State())
  /// The maximum number of idle connections.
  private static let idleLimit = 4

  init(_ address: String) { self.address = address }

  /// Calls `body` with a connection for its exclusive use, an idle or a new one. Throws `unreachable` if no connection
  /// is made by `deadline`; without a deadline, waits as long as connecting takes.
  func with<Result>(
    before deadline: ContinuousClock.Instant? = nil,
    _ body: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(PostgresError) -> Result {
    let (kept, generation, isClosed) = state.withLock { ($0.idle.popLast(), $0.generation, $0.isClosed) }
    guard !isClosed else { throw .unreachable("the journal is closed") }
    let connection: PostgresConnection
    if let kept {
      connection = kept
    } else if let deadline {
      connection = try connect(before: deadline, generation)
    } else {
      connection = try PostgresConnection(address)
    }
    do throws(PostgresError) {
      let result = try body(connection)
      release(connection, generation)
      return result
    } catch {
      if case .lost = error { drop() } else { release(connection, generation) }
      throw error
    }
  }

  /// Calls `body` as `with` does, but repeats it once if the connection is lost, since a kept connection may be dead.
  /// For a `body` that only reads.
  func withReading<Result>(
    before deadline: ContinuousClock.Instant? = nil,
    _ body: (PostgresConnection) throws(PostgresError) -> Result
  ) throws(PostgresError) -> Result {
    do throws(PostgresError) {
      return try with(before: deadline, body)
    } catch .lost {
      return try with(before: deadline, body)
    } catch {
      throw error
    }
  }

  /// The outcome of an attempt to connect.
  private struct Attempt {
    var outcome: Swift.Result<PostgresConnection, PostgresError>?
    /// True if the call that wanted the connection is over.
    var isAbandoned = false
  }

  /// The queue for connection attempts that may take longer than the caller waits: libpq tries one host after the other
  /// by itself only in a blocking call.
  private static let connecting = DispatchQueue(label: "keyway.postgres.connecting", attributes: .concurrent)

  /// Makes a connection. One that is made too late is kept for the next call.
  private func connect(
    before deadline: ContinuousClock.Instant, _ generation: Int
  ) throws(PostgresError) -> PostgresConnection {
    let attempt = Locked(Attempt())
    let end = DispatchSemaphore(value: 0)
    Self.connecting.async { [self] in
      let outcome = Swift.Result { () throws(PostgresError) in try PostgresConnection(address) }
      let isAbandoned = attempt.withLock { attempt in
        attempt.outcome = outcome
        return attempt.isAbandoned
      }
      if isAbandoned, case .success(let connection) = outcome { release(connection, generation) }
      end.signal()
    }
    _ = end.wait(timeout: .now() + .milliseconds(Int((deadline - .now).pollMilliseconds)))
    let outcome = attempt.withLock { attempt in
      attempt.isAbandoned = attempt.outcome == nil
      return attempt.outcome
    }
    guard let outcome else { throw .unreachable("no connection was made in time") }
    return try outcome.get()
  }

  private func release(_ connection: PostgresConnection, _ generation: Int) {
    guard connection.isIdle else { return }
    state.withLock { state in
      guard state.generation == generation, !state.isClosed, state.idle.count < Self.idleLimit else { return }
      state.idle.append(connection)
    }
  }

  /// Closes the idle connections.
  private func drop() {
    let dropped = state.withLock { state in
      state.generation += 1
      defer { state.idle = [] }
      return state.idle
    }
    withExtendedLifetime(dropped) {}
  }

  /// Closes the pool: it keeps and makes no connections from now on.
  func close() {
    state.withLock { $0.isClosed = true }
    drop()
  }
}
