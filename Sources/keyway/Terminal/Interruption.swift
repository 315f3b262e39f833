import Dispatch
import Foundation

/// Work that SIGINT and SIGTERM end cleanly: the task is cancelled, and the command exits with 0.
enum Interruption {
  /// Runs `body` in a task of its own that either signal cancels, from the first instruction of `body` on.
  static func cancelling(_ body: @escaping @Sendable () async throws -> Void) async throws {
    let (signals, continuation) = AsyncStream.makeStream(of: Void.self)
    var sources: [any DispatchSourceSignal] = []
    for number in [SIGINT, SIGTERM] {
      // A dispatch source hears of a signal only if its default action does not come first, and only once it is
      // registered, which happens on another thread.
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number)
      source.setEventHandler { continuation.yield() }
      await withCheckedContinuation { registered in
        source.setRegistrationHandler { registered.resume() }
        source.resume()
      }
      sources.append(source)
    }
    let work = Task { try await body() }
    let cancellation = Task { for await _ in signals { work.cancel() } }
    defer {
      cancellation.cancel()
      for source in sources { source.cancel() }
    }
    do {
      try await work.value
    } catch is CancellationError {
      return
    }
  }
}
