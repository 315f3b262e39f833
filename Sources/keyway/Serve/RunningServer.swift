import Foundation
import Glibc
import KeywayAPI
import Logging
import UnixSignals

/// The life of a server: it reads its journal, serves until SIGTERM or SIGINT, and drains. SIGHUP has it read its keys
/// and its settings again.
///
/// Two things may come first, the end of the recovery or a signal, so both arrive in one stream of notices.
struct RunningServer {
  private enum Notice: Sendable {
    case recovered(Result<[String], any Error>)
    case signalled
  }

  let server: KeywayServer
  /// Where the store is.
  let directory: String
  /// The settings, as far as they can change meanwhile.
  let settings: RunningSettings
  let logger: Logger
  /// Reports that the server serves. It is called once signals are trapped, since its reader may send one at once.
  let announce: @Sendable () -> Void

  /// Returns when a signal has ended the server and it has drained.
  ///
  /// - Throws: what keeps the server from recovering.
  func untilSignalled() async throws {
    let (notices, continuation) = AsyncStream.makeStream(of: Notice.self)
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
    // It goes on after the first signal: the default action of a second one would cut the drain.
    let trap = Task { for await _ in signals { continuation.yield(.signalled) } }
    let reloads = await UnixSignalsSequence(trapping: .sighup)
    let reload = Task { [server, settings] in
      for await _ in reloads {
        server.reloadKeys()
        settings.reload(server)
      }
    }
    defer {
      trap.cancel()
      reload.cancel()
    }
    let log = RecoveryLog(logger)
    Thread.detachNewThread { [server] in
      continuation.yield(.recovered(Result { try log.closing { try server.recover(report: log.note) } }))
    }
    for await notice in notices {
      guard case .recovered(let outcome) = notice else { break }
      let remarks = try StoreAdvice.giving(for: directory, outcome.get)
      for remark in remarks { logger.warning("\(remark)") }
      announce()
    }
    let (noticeSeconds, drainSeconds) = settings.drain
    server.announceDraining()
    if noticeSeconds > 0 {
      logger.notice("stopping soon", metadata: ["seconds": "\(noticeSeconds)"])
      try? await Task.sleep(for: .seconds(noticeSeconds))
    }
    endAnyway(drainSeconds)
    server.drain(seconds: drainSeconds)
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
