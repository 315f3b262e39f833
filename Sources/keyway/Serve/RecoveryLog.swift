internal import Foundation
internal import Locking
internal import Logging
internal import ModelStore

/// Logs how far a recovery has come, every few seconds: a person who waits wants to see that it goes on.
final class RecoveryLog: Sendable {
  private let logger: Logger
  private let nextLine = Locked(Date.distantPast)

  /// Seconds between two lines.
  private static let interval: TimeInterval = 2

  init(_ logger: Logger) {
    self.logger = logger
  }

  /// Takes note of progress.
  func note(_ progress: RecoveryProgress) {
    let isDue = nextLine.withLock { next in
      guard next <= Date() else { return false }
      next = Date(timeIntervalSinceNow: Self.interval)
      return true
    }
    if isDue { logger.info("recovering", metadata: ["progress": "\(progress)"]) }
  }
}
