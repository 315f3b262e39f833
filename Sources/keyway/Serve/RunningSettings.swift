import KeywayServer
import Logging
import Support

/// The settings of a running server: the present values, and those that can be reloaded.
///
/// Only the present settings are mutable. Their lock is held while they are reloaded, so that two signals do not
/// interfere.
final class RunningSettings: Sendable {
  private let current: Locked<Settings>
  private let source: SettingsSource
  private let log: LogOutput
  private let logger: Logger

  /// Creates the settings of a start, with their source.
  init(_ settings: Settings, from source: SettingsSource, log: LogOutput, logger: Logger) {
    current = Locked(settings)
    (self.source, self.log, self.logger) = (source, log, logger)
  }

  /// The seconds for which a stop is announced, and the seconds that it may take then.
  var drain: (noticeSeconds: Int, seconds: Int) { current.withLock { ($0.drainNoticeSeconds, $0.drainSeconds) } }

  /// Reads the settings again, and applies the changed ones that a running server can take over: all of them, or none
  /// if anything is wrong. Logs these, and those that need a restart.
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
            "settings changed that need a restart",
            metadata: ["settings": "\(changes.left.joined(separator: ", "))"])
        }
      } catch {
        logger.error("settings not read; the former stay", metadata: ["reason": "\(error)"])
      }
    }
  }
}

extension Settings {
  /// The settings that a running server takes over. All others need a restart.
  static let reloadable: Set<String> = [
    "access.requestsPerSecond", "access.rateClients", "public", "log.level", "log.access", "drain.noticeSeconds",
    "drain.seconds",
  ]

  /// Returns the settings of a running server after others were read, with the names of the settings that it takes over
  /// and of those that it leaves as they are. A server without a public folder does not get one, since its paths are
  /// made at the start. One with a public folder keeps it or gets another.
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
