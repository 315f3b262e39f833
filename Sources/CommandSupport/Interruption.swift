import Dispatch
import Foundation

/// Work that SIGINT and SIGTERM end cleanly: the task is cancelled, and the command exits with 0.
package enum Interruption {
  /// Runs `body` in a task of its own that either signal cancels.
  package static func cancelling(_ body: @escaping @Sendable () async throws -> Void) async throws {
    let task = Task { try await body() }
    let sources = [SIGINT, SIGTERM].map { number in
      // A dispatch source hears of a signal only if its default action does not come first.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { task.cancel() }
      source.resume()
      return source
    }
    defer { for source in sources { source.cancel() } }
    do {
      try await task.value
    } catch is CancellationError {
      return
    }
  }
}
