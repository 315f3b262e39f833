import Foundation

/// How many characters a terminal shows.
struct TerminalSize: Hashable, Sendable {
  var columns: Int
  var rows: Int

  /// What terminals have that do not say: the VT100's.
  static let usual = TerminalSize(columns: 80, rows: 24)

  /// The size of the terminal on standard output.
  static var current: TerminalSize {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return usual }
    return TerminalSize(columns: Int(size.ws_col), rows: Int(size.ws_row))
  }
}
