import Dispatch
import Support

/// Connections to a database, each used by one thread at a time. Any thread.
///
/// `state` is all that changes, under its lock, which is never held while a database is waited for.
final class PostgresPool: Sendable {
  private struct State {
    var idle: [PostgresConnection] = []
    /// Moves on when a connection was lost: those from before are likely to be dead too.
    var generation = 0
    var isClosed = false
  }

  /// How the database is reached, as libpq reads it.
  let address: String
  private let state = Locked(State())
  /// The most connections that are kept for the next call.
  private static let idleLimit = 4

  init(_ address: String) { self.address = address }

  /// Does something with a connection that no other has: one that is kept, or a new one. Throws `unreachable` where no
  /// connection stands by `deadline`; without one it waits as long as connecting takes.
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
      giveBack(connection, generation)
      return result
    } catch {
      if case .lost = error { drop() } else { giveBack(connection, generation) }
      throw error
    }
  }

  /// The same for what only reads, and so may be done twice: a connection that was kept may be dead.
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

  /// The queue on which connections are made that may take longer than they are waited for: libpq goes from
  /// host to host by itself only in a call that blocks.
  private static let connecting = DispatchQueue(label: "keyway.postgres.connecting", attributes: .concurrent)

  /// A new connection. One that stands too late is kept for the next call.
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
      if isAbandoned, case .success(let connection) = outcome { giveBack(connection, generation) }
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

  private func giveBack(_ connection: PostgresConnection, _ generation: Int) {
    guard connection.isIdle else { return }
    state.withLock { state in
      guard state.generation == generation, !state.isClosed, state.idle.count < Self.idleLimit else { return }
      state.idle.append(connection)
    }
  }

  /// Lets go of the connections that are kept.
  private func drop() {
    let dropped = state.withLock { state in
      state.generation += 1
      defer { state.idle = [] }
      return state.idle
    }
    withExtendedLifetime(dropped) {}
  }

  /// Keeps none from now on, and makes none.
  func close() {
    state.withLock { $0.isClosed = true }
    drop()
  }
}
