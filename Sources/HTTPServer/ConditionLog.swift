package import Logging
import Support

/// Reports conditions to operators: logs each one when it begins, now and then while it lasts, and when it has ended,
/// and counts every occurrence.
///
/// A condition begins with its first occurrence and ends after a time without any; a condition with a known end is
/// `set`. Thousands of events caused by clients become a few lines. Any thread; logging happens outside the lock.
package final class ConditionLog: Sendable {
  /// The occurrences of one condition.
  package struct Count: Sendable {
    /// The number of occurrences since the start.
    package var total = 0
    /// True while the condition lasts.
    package var isActive = false
  }

  private struct Episode {
    var count = Count()
    var countAtBeginning = 0
    var beganSecond: Int64 = 0
    var lastSecond: Int64 = 0
    var reportSecond: Int64 = 0
    /// True if the owner of the condition decides when it ends.
    var isHeld = false

    /// Counts occurrences. Returns true if the condition begins with them.
    mutating func occurred(_ occurrences: Int, at second: Int64) -> Bool {
      let isFirst = !count.isActive
      if isFirst {
        count.isActive = true
        countAtBeginning = count.total
        beganSecond = second
        reportSecond = second + ConditionLog.reportSeconds
      }
      count.total += occurrences
      lastSecond = second
      return isFirst
    }
  }

  private struct Line {
    let level: Logger.Level
    let message: Logger.Message
    let metadata: Logger.Metadata
  }

  /// The interval at which a lasting condition is logged again, in seconds.
  private static let reportSeconds: Int64 = 600

  private let logger: Logger
  private let quietSeconds: Int64
  private let now: @Sendable () -> Int64
  private let episodes = Locked<[Condition: Episode]>([:])

  /// Creates a log without conditions. A condition without occurrences for `quietSeconds` has ended; `now` returns
  /// seconds of a monotonic clock.
  package init(logger: Logger, quietSeconds: Int = 60, now: (@Sendable () -> Int64)? = nil) {
    self.logger = logger
    self.quietSeconds = Int64(quietSeconds)
    self.now = now ?? { Int64(SystemClock.coarseSeconds) }
  }

  /// Records one or more occurrences. `client` is the client that met the condition first, `detail` describes that
  /// occurrence; both appear in the line that reports the beginning.
  package func note(
    _ condition: Condition, count: Int = 1, client: ClientAddress? = nil, detail: @autoclosure () -> String? = nil
  ) {
    let second = now()
    let isFirst = episodes.withLock { episodes in
      episodes[condition, default: Episode()].occurred(count, at: second)
    }
    if isFirst { log(began(condition, client: client, detail: detail())) }
  }

  /// Sets whether a condition with a known end lasts. Setting the same value again does nothing.
  package func set(_ condition: Condition, isActive: Bool, detail: @autoclosure () -> String? = nil) {
    let second = now()
    let line = episodes.withLock { episodes -> Line? in
      if isActive {
        var episode = episodes[condition, default: Episode()]
        guard !episode.isHeld else { return nil }
        _ = episode.occurred(1, at: second)
        episode.isHeld = true
        episodes[condition] = episode
        return began(condition, client: nil, detail: detail())
      }
      guard let episode = episodes[condition], episode.isHeld else { return nil }
      return end(condition, &episodes, at: second)
    }
    if let line { log(line) }
  }

  /// Ends the conditions that have not occurred for a while, and reports those that last. Call it about once a second.
  package func sweep() {
    let second = now()
    let lines = episodes.withLock { episodes in
      var lines: [Line] = []
      for (condition, episode) in episodes where episode.count.isActive {
        if !episode.isHeld, second - episode.lastSecond >= quietSeconds {
          lines.append(end(condition, &episodes, at: second))
        } else if second >= episode.reportSecond {
          episodes[condition]?.reportSecond = second + Self.reportSeconds
          lines.append(
            Line(
              level: condition.level, message: "still: \(condition.message)",
              metadata: metadata(of: condition, episode, at: second)))
        }
      }
      return lines
    }
    for line in lines { log(line) }
  }

  /// Every condition that ever occurred, with its counts.
  package var counts: [(condition: Condition, count: Count)] {
    episodes.withLock { $0.map { ($0.key, $0.value.count) } }
  }

  private func began(_ condition: Condition, client: ClientAddress?, detail: String?) -> Line {
    var metadata: Logger.Metadata = ["condition": "\(condition.name)"]
    if let client { metadata["client"] = "\(client)" }
    if let detail { metadata["detail"] = "\(detail)" }
    return Line(level: condition.level, message: "\(condition.message)", metadata: metadata)
  }

  private func end(_ condition: Condition, _ episodes: inout [Condition: Episode], at second: Int64) -> Line {
    let episode = episodes[condition] ?? Episode()
    episodes[condition]?.count.isActive = false
    episodes[condition]?.isHeld = false
    return Line(
      level: .notice, message: "ended: \(condition.message)", metadata: metadata(of: condition, episode, at: second))
  }

  private func metadata(of condition: Condition, _ episode: Episode, at second: Int64) -> Logger.Metadata {
    [
      "condition": "\(condition.name)", "count": "\(episode.count.total - episode.countAtBeginning)",
      "seconds": "\(second - episode.beganSecond)",
    ]
  }

  private func log(_ line: Line) {
    logger.log(level: line.level, line.message, metadata: line.metadata)
  }
}

/// A lasting state that an operator may have to act on: a limit that is reached, a client that is repeatedly
/// disconnected, a store that accepts no writes.
package struct Condition: Hashable, Sendable {
  /// The name in metrics and in the log: lower case, words joined by underscores.
  package let name: String
  /// The meaning of the condition, and the setting or other cause that determines it.
  package let message: String
  /// The log level of the line that reports the beginning.
  package let level: Logger.Level

  /// Creates a condition.
  package init(_ name: String, _ message: String, level: Logger.Level = .warning) {
    (self.name, self.message, self.level) = (name, message, level)
  }

  /// Returns true if both have the same name.
  package static func == (left: Condition, right: Condition) -> Bool { left.name == right.name }

  /// Hashes the name.
  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension Condition {
  /// A connection was closed immediately after it was accepted.
  package static let connections = Condition(
    "connections", "new connections are closed: connections.maximum or connections.perAddress is reached")
  /// A descriptor was needed and none was available.
  package static let descriptors = Condition(
    "descriptors", "no descriptor is left, and connections are closed: raise the limit of the process (ulimit -n)",
    level: .error)
  /// A stream was refused.
  package static let streams = Condition("streams", "streams are refused: a limit of open streams is reached")
  /// A live query was refused.
  package static let queries = Condition(
    "queries", "live queries are refused: queries.maximum or queries.rows is reached")
  /// A request was refused because too many were waiting.
  package static let overload = Condition(
    "overload", "requests are refused: a limit of queues or memory is reached")
  /// A stream was closed because its client read nothing.
  package static let stalled = Condition(
    "stalled", "streams are cut: their clients read nothing for streams.stallSeconds")
  /// A stream was ended because too much data was waiting for its client.
  package static let overflow = Condition(
    "overflow", "streams are ended: data for their clients exceeds streams.pendingBytes or memory.clientBytes")
}
