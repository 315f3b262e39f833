package import Logging

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
