import Dispatch
import Glibc
package import Logging
import Support

/// Where the lines of the log go: a descriptor, by way of a bounded buffer that a thread of its own empties.
///
/// Logging never waits for the reader of the log. What does not fit into the buffer any more is dropped and counted,
/// and the log itself says how much, as soon as its reader goes on. Everything mutable is behind the lock.
package final class LogOutput: Sendable {
  private struct Buffer {
    var waiting: [UInt8] = []
    /// The thread is at work, or about to be.
    var isEmptying = false
    var dropped = 0
    /// How many of those the log has told of.
    var toldDropped = 0
  }

  /// How its lines look.
  package let format: LogFormat
  /// The least severe entries that are written by handlers without a level of their own.
  private let leastLevel: Locked<Logger.Level>
  /// The time in milliseconds since 1970.
  let now: @Sendable () -> Int64
  private let descriptor: Int32
  private let limit: Int
  private let buffer = Locked(Buffer())
  private let queue = DispatchQueue(label: "keyway.log")

  /// An output to a descriptor, which stays its owner's. At most `bytes` wait to be written, and as many are being
  /// written. `now` gives the time in milliseconds since 1970.
  package init(
    _ format: LogFormat, level: Logger.Level = .info, descriptor: Int32, bytes: Int,
    now: (@Sendable () -> Int64)? = nil
  ) {
    leastLevel = Locked(level)
    (self.format, self.descriptor, limit) = (format, descriptor, bytes)
    self.now = now ?? { Int64(SystemClock.epochMilliseconds) }
  }

  /// The least severe entries that are written by handlers without a level of their own. Any thread.
  package var level: Logger.Level {
    get { leastLevel.withLock { $0 } }
    set { leastLevel.withLock { $0 = newValue } }
  }

  /// How many lines were lost since the start. Any thread.
  package var droppedLines: Int { buffer.withLock { $0.dropped } }

  /// Takes whole lines, each with its end. Any thread; does not wait.
  package func write(_ line: [UInt8]) {
    let isNeeded = buffer.withLock { buffer in
      guard buffer.waiting.count + line.count <= limit else {
        buffer.dropped += Self.lineCount(line)
        return false
      }
      buffer.waiting += line
      defer { buffer.isEmptying = true }
      return !buffer.isEmptying
    }
    if isNeeded { queue.async { [self] in empty() } }
  }

  /// Waits until everything is written, or for as long as it may take.
  package func flush(within duration: Duration) {
    let deadline = ContinuousClock.now + duration
    while buffer.withLock({ $0.isEmptying }), ContinuousClock.now < deadline { usleep(2_000) }
  }

  private func empty() {
    while let bytes = take() {
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count > 0 {
          rest = rest.dropFirst(count)
        } else if errno == EAGAIN {
          var poller = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&poller, 1, -1)
        } else if errno != EINTR {
          // No reader is left, or no room: these lines are lost, the next may not be.
          buffer.withLock { $0.dropped += Self.lineCount(rest) }
          break
        }
      }
    }
  }

  /// What waits; nil, and the thread is done, where that is nothing.
  private func take() -> [UInt8]? {
    let (bytes, dropped) = buffer.withLock { buffer -> ([UInt8], Int) in
      defer { buffer.waiting = [] }
      buffer.isEmptying = !buffer.waiting.isEmpty
      guard buffer.isEmptying else { return ([], 0) }
      defer { buffer.toldDropped = buffer.dropped }
      return (buffer.waiting, buffer.dropped - buffer.toldDropped)
    }
    guard !bytes.isEmpty else { return nil }
    guard dropped > 0 else { return bytes }
    var line = LogLine(format, at: now(), .warning, label: "keyway", message: "lines of the log were dropped")
    line.add("lines", dropped)
    return line.ended() + bytes
  }

  private static func lineCount(_ bytes: some Sequence<UInt8>) -> Int {
    bytes.reduce(0) { $0 + ($1 == UInt8(ascii: "\n") ? 1 : 0) }
  }
}

/// Writes entries of the log as lines of either format, without waiting for the reader of the log.
package struct LineLogHandler: LogHandler {
  private let label: String
  private let output: LogOutput
  /// What stands in each entry.
  package var metadata: Logger.Metadata = [:]
  /// Nil where the level is that of the output.
  private var ownLevel: Logger.Level?

  /// The least severe entries that are written: those of the output, until another level is set.
  package var logLevel: Logger.Level {
    get { ownLevel ?? output.level }
    set { ownLevel = newValue }
  }

  /// A handler for the logger of that label.
  package init(label: String, output: LogOutput) {
    (self.label, self.output) = (label, output)
  }

  /// One value that stands in each entry.
  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Writes an entry.
  package func log(event: LogEvent) {
    var line = LogLine(
      output.format, at: output.now(), event.level, label: label, message: "\(event.message)")
    let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
    for (key, value) in all.sorted(by: { $0.key < $1.key }) { line.add(key, "\(value)") }
    output.write(line.ended())
  }
}
