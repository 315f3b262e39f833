import UnixSignals

/// Work that SIGINT and SIGTERM end cleanly: the task is cancelled, and the command exits with 0.
package enum Interruption {
  /// Runs `body` in a task of its own that either signal cancels. Signals are watched before it begins.
  package static func cancelling(_ body: @escaping @Sendable () async throws -> Void) async throws {
    let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
    let work = Task { try await body() }
    let watch = Task { for await _ in signals { work.cancel() } }
    defer { watch.cancel() }
    do {
      try await work.value
    } catch is CancellationError {
      return
    }
  }
}
