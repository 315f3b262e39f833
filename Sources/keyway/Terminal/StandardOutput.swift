internal import Foundation

/// Lines on standard output, each out at once: whoever reads from a pipe wants an event when it happens.
enum StandardOutput {
  /// Writes a line, without a buffer in between.
  static func line(_ text: String) {
    FileHandle.standardOutput.write(Data((text + "\n").utf8))
  }
}
