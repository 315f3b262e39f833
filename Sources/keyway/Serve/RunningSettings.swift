import KeywayServer
import Logging
import Support

/// The settings of a server that runs: which of them hold now, and which can be read again.
///
/// Mutable are the settings that hold, behind a lock that is held while they are read again, so that two signals do not
/// mix.
final class RunningSettings: Sendable {
  private let current: Locked<Settings>
  private let source: SettingsSource
  private let log: LogOutput
  private let logger: Logger

  /// Settings that hold at the start, and where they come from.
  init(_ settings: Settings, from source: SettingsSource, log: LogOutput, logger: Logger) {
    current = Locked(settings)
    (self.source, self.log, self.logger) = (source, log, logger)
  }

  /// How long a stop is announced, and how long it may take then.
  var drain: (noticeSeconds: Int, seconds: Int) { current.withLock { ($0.drainNoticeSeconds, $0.drainSeconds) } }

  /// Reads the settings again, and lets the server take over those that have changed and that it can: all of them, or
  /// none where anything is wrong. Logs which, and which want a restart.
  func reload(_ server: KeywayServer) {
    current.withLock { current in
      do {
        let changes = current.changes(to: try source.load())
        try server.reload(changes.settings.api)
        log.level = changes.settings.logLevel
        current = changes.settings
        let names = changes.taken.joined(separator: ", ")
        logger.notice("settings read", metadata: ["changed": "\(names.isEmpty ? "none" : names)"])
        if !changes.left.isEmpty {
          logger.warning(
            "settings changed that want a restart",
            metadata: ["settings": "\(changes.left.joined(separator: ", "))"])
        }
      } catch {
        logger.error("settings not read; the former stay", metadata: ["reason": "\(error)"])
      }
    }
  }
}

extension Settings {
  /// The settings that a server takes over while it runs; all others want a restart.
  static let reloadable: Set<String> = [
    "access.requestsPerSecond", "access.rateClients", "public", "log.level", "log.access", "drain.noticeSeconds",
    "drain.seconds",
  ]

  /// What becomes of these settings in a running server where others were read: those that it takes over, by their
  /// names, and those that it leaves as they are. A server without a public folder gets none, since its paths are made
  /// at the start, and one that has one keeps it or gets another.
  func changes(to read: Settings) -> (settings: Settings, taken: [String], left: [String]) {
    var settings = self
    var (taken, left): ([String], [String]) = ([], [])
    for setting in Self.all where setting.value(self) != setting.value(read) {
      let ends: [Setting.Value] = [setting.value(self), setting.value(read)]
      let isFolderMadeOrGone = setting.name == "public" && ends.contains(.text(FileOptions.none))
      let isTaken =
        Self.reloadable.contains(setting.name) && !isFolderMadeOrGone
        && (try? setting.store(&settings, setting.value(read))) != nil
      if isTaken { taken.append(setting.name) } else { left.append(setting.name) }
    }
    return (settings, taken, left)
  }
}
