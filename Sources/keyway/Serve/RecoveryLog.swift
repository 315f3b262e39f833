import Foundation
import Logging
import Store
import Support

/// Logs how far a recovery has come: a line every few seconds, and one at the end with what was read in all.
final class RecoveryLog: Sendable {
  private struct State {
    var progress: RecoveryProgress?
    var nextLine: Date
  }

  private let logger: Logger
  private let start = ContinuousClock.now
  private let state = Locked(State(nextLine: Date(timeIntervalSinceNow: interval)))

  /// Seconds between two lines.
  private static let interval: TimeInterval = 2

  init(_ logger: Logger) {
    self.logger = logger
  }

  func note(_ progress: RecoveryProgress) {
    let isDue = state.withLock { state in
      state.progress = progress
      guard state.nextLine <= Date() else { return false }
      state.nextLine = Date(timeIntervalSinceNow: Self.interval)
      return true
    }
    if isDue { logger.info("recovering", metadata: ["progress": "\(progress)"]) }
  }

  /// Runs a recovery; where it succeeds and had something to read, its end is logged.
  func closing<Result>(_ recover: () throws -> Result) rethrows -> Result {
    let result = try recover()
    if let progress = state.withLock({ $0.progress }) {
      let seconds = String(format: "%.1f", start.elapsedSeconds)
      logger.info("recovered", metadata: ["progress": "\(progress)", "seconds": "\(seconds)"])
    }
    return result
  }
}
