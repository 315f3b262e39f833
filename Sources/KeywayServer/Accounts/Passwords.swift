import HTTPServer
import HTTPTypes
import Support
import Synchronization

/// Hashes passwords and compares them with accounts: two at a time, on threads of its own, in a bounded queue that is
/// fair between addresses. A hash takes 32 MiB of memory, and most of a second.
final class Passwords: Sendable {
  private static let threads = 2
  private static let (waiting, waitingPerClient) = (256, 64)

  private let pool: ReadingPool
  private let failures = Locked(SignInFailures())
  private let cost: PasswordHash.Cost
  private let hashes = Atomic(0)

  /// Creates a queue of no passwords. It has threads only if there are accounts.
  init(_ options: AccessOptions) {
    cost = options.passwordCost
    pool = ReadingPool(
      "keyway-passwd", threads: options.accounts ? Self.threads : 0, waiting: Self.waiting,
      waitingPerClient: Self.waitingPerClient)
  }

  /// Hashes a password for a client, and calls `body` with the result. If too many wait, or there is no memory for a
  /// hash, `completion` gets the response `overloaded`.
  func hash(
    _ password: String, for client: ClientAddress, _ completion: Completion,
    _ body: @escaping @Sendable (PasswordHash) -> Void
  ) {
    perform(for: client, completion) { [self] in
      hashes.add(1, ordering: .relaxed)
      guard let hash = try? PasswordHash(of: password, cost: cost) else { return completion.respond(Self.noMemory) }
      body(hash)
    }
  }

  /// Compares a password with that of an account for a client, and calls `body` with the result. Without an account the
  /// result is false, after the same work. `name` is nil if no account can have it. Throws `too-many-requests` after
  /// too many failures.
  func check(
    _ password: String, _ name: AccountName?, of account: Account?, for client: ClientAddress, _ completion: Completion,
    _ body: @escaping @Sendable (_ isRight: Bool) -> Void
  ) throws(Problem) {
    let attempt = try begin(name, from: client)
    perform(for: client, completion) { [self] in
      hashes.add(1, ordering: .relaxed)
      guard let isRight = try? (account?.password ?? .ofNoPassword(cost)).isHash(of: password) else {
        failures.withLock { $0.takeBack(attempt) }
        return completion.respond(Self.noMemory)
      }
      if isRight, account != nil { failures.withLock { $0.takeBack(attempt) } }
      body(isRight && account != nil)
    } orRefusing: { [self] in
      failures.withLock { $0.takeBack(attempt) }
    }
  }

  private func begin(_ name: AccountName?, from client: ClientAddress) throws(Problem) -> SignInFailures.Attempt {
    do throws(SignInFailures.Refusal) {
      return try failures.withLock { failures throws(SignInFailures.Refusal) in
        try failures.begin(name, from: client, at: SystemClock.coarseMilliseconds)
      }
    } catch {
      throw Problem(.tooManyRequests, "too many sign-ins have failed; try again later")
        .with(.retryAfter, "\(error.seconds)")
    }
  }

  private func perform(
    for client: ClientAddress, _ completion: Completion, _ job: @escaping @Sendable () -> Void,
    orRefusing refused: @escaping @Sendable () -> Void = {}
  ) {
    let isAccepted = pool.submit(for: client) {
      // Clients that have left must not cost a hash.
      guard !completion.isAbandoned else {
        refused()
        return completion.respond(.clientClosedRequest)
      }
      completion.beginWork()
      job()
      completion.endWork()
    }
    guard !isAccepted else { return }
    refused()
    completion.respond(Problem(.overloaded, "too many passwords wait to be checked; try again").response)
  }

  private static var noMemory: Response {
    Problem(.overloaded, "the memory does not suffice to check a password; try again").response
  }

  /// Exports the count to the metrics.
  func export(to registry: PrometheusRegistry) {
    registry.set(.passwordHashes, to: Double(hashes.load(ordering: .relaxed)))
  }

  /// Forgets failures that no longer count.
  func sweep() { failures.withLock { $0.sweep(at: SystemClock.coarseMilliseconds) } }

  /// Stops the threads. The waiting clients have been answered before.
  func stop() { pool.stop() }
}
