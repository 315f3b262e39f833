import Cluster
import Foundation
import Glibc
import HTTPServer
import KeywayServer
import Logging
import Store
import Support

/// The life of a server: it reads its journal, serves until a signal stops it, and drains.
///
/// Two things may come first, the end of the recovery or a signal, so both arrive in one stream of notices.
struct RunningServer {
  /// What ended it.
  enum Outcome: Sendable {
    case signalled
    /// It followed another node and has to begin anew with a copy of what that has.
    case rejoin(LeaderCopy)
    /// It shared a journal, and has to begin anew with what that is now.
    case reopened(any SharedJournal)
    /// It shared a journal that it cannot go on with, for this reason.
    case over(String)
  }

  private enum Notice: Sendable {
    case recovered(Result<[String], any Error>)
    case ended(Outcome)
  }

  let server: KeywayServer
  /// Where the store is.
  let directory: String
  /// The settings, as far as they can change meanwhile.
  let settings: RunningSettings
  let logger: Logger
  /// The signals that stop it, or make it read its keys and settings again.
  let signals: ServerSignals
  /// What ends it besides signals.
  var ends: AsyncStream<Outcome>?
  /// Reports that the server serves.
  let announce: @Sendable () -> Void

  /// Returns what has ended the server, once it has drained.
  ///
  /// - Throws: what keeps the server from recovering.
  func untilSignalled() async throws -> Outcome {
    let (notices, continuation) = AsyncStream.makeStream(of: Notice.self)
    // They go on after the first one: the default action of a second one would cut the drain.
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
      // What was read from, between the objects that were made of it.
      SystemAllocator.giveBack()
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

  /// Ends the program within the second after the drain should have ended it: a thread that is stuck cannot be stopped,
  /// and a supervisor that waits for the program would kill it.
  private func endAnyway(_ drainSeconds: Int) {
    let logger = logger
    let patience = Double(drainSeconds) + 0.6
    Thread.detachNewThread {
      Thread.sleep(forTimeInterval: patience)
      // On a thread of its own, because the log may be what blocks.
      Thread.detachNewThread { logger.error("a thread does not end; ending without it") }
      Thread.sleep(forTimeInterval: 0.1)
      _exit(0)
    }
  }
}

/// Logs how far a recovery has come: a line every few seconds, and one at the end with what was read in all.
private final class RecoveryLog: Sendable {
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
