package import HTTPServer

/// Which files a server has for browsers.
package struct FileOptions: Sendable {
  /// What `public` says where there is no folder.
  package static let none = "none"

  /// Whether there is the console. `console`.
  package var console = true
  /// The folder of an application's own files, or `none`. `public`.
  package var folder = none
  /// Bounds of those of them that are being sent. `files.open`, `files.openPerClient`.
  package var openFiles = OpenFiles.Limits()

  /// The defaults.
  package init() {}
}
