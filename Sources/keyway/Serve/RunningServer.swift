import Cluster
import Foundation
import Glibc
import HTTPServer
import KeywayServer
import Logging
import Store
import Support

/// Runs a server: it reads its journal, serves until a signal stops it, and drains.
///
/// Either the end of the recovery or a signal may come first, so both arrive in one stream of notices.
struct RunningServer {
  /// The reason why it ended.
  enum Outcome: Sendable {
    case signalled
    /// It followed another node, and has to begin again with this copy.
    case rejoin(LeaderCopy)
    /// It shared a journal, and has to begin again with this one.
    case reopened(any SharedJournal)
    /// It cannot go on, for this reason.
    case over(String)
  }

  private enum Notice: Sendable {
    case recovered(Result<[String], any Error>)
    case ended(Outcome)
  }

  let server: KeywayServer
  /// The directory of the store.
  let directory: String
  /// The settings, some of which can change while the server runs.
  let settings: RunningSettings
  let logger: Logger
  /// The signals that stop it, or make it read its keys and settings again.
  let signals: ServerSignals
  /// The outcomes, besides signals, that end it.
  var ends: AsyncStream<Outcome>?
  /// Reports that the server serves.
  let announce: @Sendable () -> Void

  /// Returns the reason why the server ended, once it has drained.
  ///
  /// - Throws: The error that keeps the server from recovering.
  func untilSignalled() async throws -> Outcome {
    let (notices, continuation) = AsyncStream.makeStream(of: Notice.self)
    // Signals are trapped even after the first one, since the default action of a second one would cut the drain short.
    signals.receive { [server, settings] request in
      switch request {
      case .stop: continuation.yield(.ended(.signalled))
      case .reload:
        server.reloadKeys()
        settings.reload(server)
      }
    }
    let ending = Task { [ends] in
      if let ends { for await end in ends { continuation.yield(.ended(end)) } }
    }
    defer {
      ending.cancel()
      signals.release()
    }
    let log = RecoveryLog(logger)
    Thread.detachNewThread { [server] in
      let recovered = Result { try log.closing { try server.recover(report: log.note) } }
      // Returns the memory of what was read to the system.
      SystemAllocator.releaseFreeMemory()
      continuation.yield(.recovered(recovered))
    }
    var result = Outcome.signalled
    loop: for await notice in notices {
      switch notice {
      case .recovered(let outcome):
        let remarks = try StoreAdvice.giving(for: directory, outcome.get)
        for remark in remarks { logger.warning("\(remark)") }
        announce()
      case .ended(let outcome):
        result = outcome
        break loop
      }
    }
    let (noticeSeconds, drainSeconds) = settings.drain
    if case .signalled = result {
      server.announceDraining()
      if noticeSeconds > 0 {
        logger.notice("stopping soon", metadata: ["seconds": "\(noticeSeconds)"])
        try? await Task.sleep(for: .seconds(noticeSeconds))
      }
      endAnyway(drainSeconds)
    }
    server.drain(seconds: drainSeconds)
    return result
  }

  /// Ends the program within a second after the drain should have ended it. A stuck thread cannot be stopped, and a
  /// supervisor that waits for the program would kill it.
  private func endAnyway(_ drainSeconds: Int) {
    let logger = logger
    let patience = Double(drainSeconds) + 0.6
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: patience)
      // Logs on a thread of its own, because the log may be what blocks.
      Thread.detachNewThread { logger.error("a thread is stuck; exiting without it") }
      Thread.sleep(forTimeInterval: 0.1)
      _exit(0)
    }
  }
}

/// Logs the progress of a recovery: a line every few seconds, and one at the end with the total.
private final class RecoveryLog: Sendable {
  private struct State {
    var progress: RecoveryProgress?
    var nextLine: Date
  }

  private let logger: Logger
  private let start = ContinuousClock.now
  private let state = Locked(State(nextLine: Date(timeIntervalSinceNow: interval)))

  /// The seconds between two lines.
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

  /// Runs a recovery. Logs its end if it succeeds and had something to read.
  func closing<Result>(_ recover: () throws -> Result) rethrows -> Result {
    let result = try recover()
    if let progress = state.withLock({ $0.progress }) {
      let seconds = String(format: "%.1f", start.elapsedSeconds)
      logger.info("recovered", metadata: ["progress": "\(progress)", "seconds": "\(seconds)"])
    }
    return result
  }
}
