import Dispatch
import Glibc
package import Logging
import Support

/// The destination of the log: a file descriptor, written to by a thread of its own from a bounded buffer.
///
/// Logging never waits for the reader of the log. Lines that do not fit into the buffer are dropped and counted, and
/// the log reports their number as soon as its reader continues. All mutable state is behind the lock.
package final class LogOutput: Sendable {
  private struct Buffer {
    var waiting: [UInt8] = []
    /// True if the thread is writing, or about to.
    var isEmptying = false
    var dropped = 0
    /// The number of dropped lines that the log has reported.
    var toldDropped = 0
  }

  /// The format of its lines.
  package let format: LogFormat
  /// The minimum level of the entries that handlers without a level of their own write.
  private let leastLevel: Locked<Logger.Level>
  /// The time in milliseconds since 1970.
  let now: @Sendable () -> Int64
  private let descriptor: Int32
  private let limit: Int
  private let buffer = Locked(Buffer())
  private let queue = DispatchQueue(label: "keyway.log")

  /// Creates an output to a descriptor, which the caller continues to own. Up to `bytes` bytes wait to be written,
  /// while up to as many are being written. `now` returns the time in milliseconds since 1970.
  package init(
    _ format: LogFormat, level: Logger.Level = .info, descriptor: Int32, bytes: Int,
    now: (@Sendable () -> Int64)? = nil
  ) {
    leastLevel = Locked(level)
    (self.format, self.descriptor, limit) = (format, descriptor, bytes)
    self.now = now ?? { Int64(SystemClock.epochMilliseconds) }
  }

  /// The minimum level of the entries that handlers without a level of their own write. Can be used from any thread.
  package var level: Logger.Level {
    get { leastLevel.withLock { $0 } }
    set { leastLevel.withLock { $0 = newValue } }
  }

  /// The number of lines dropped since the start. Can be read from any thread.
  package var droppedLines: Int { buffer.withLock { $0.dropped } }

  /// Queues whole lines, each with its newline. Can be called from any thread, and does not wait.
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

  /// Waits until everything is written, at most for `duration`.
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
          // The reader is gone, or the disk is full: these lines are lost. Later ones may succeed.
          buffer.withLock { $0.dropped += Self.lineCount(rest) }
          break
        }
      }
    }
  }

  /// Takes the waiting bytes. Nil, and the thread is done, if there are none.
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

/// Writes log entries as lines of either format, without waiting for the reader of the log.
package struct LineLogHandler: LogHandler {
  private let label: String
  private let output: LogOutput
  /// The metadata of every entry.
  package var metadata: Logger.Metadata = [:]
  /// The level of this handler, or nil if it is the level of the output.
  private var ownLevel: Logger.Level?

  /// The minimum level of the entries to write: the level of the output, until another one is set.
  package var logLevel: Logger.Level {
    get { ownLevel ?? output.level }
    set { ownLevel = newValue }
  }

  /// Creates a handler for the logger with this label.
  package init(label: String, output: LogOutput) {
    (self.label, self.output) = (label, output)
  }

  /// One metadata value of every entry.
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
