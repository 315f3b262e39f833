import Foundation

/// The files of the package that this test was built from.
struct SourceTree: Sendable {
  /// The package, read once for all tests.
  static let package = Result { try SourceTree() }

  /// One text file.
  struct File: Sendable {
    /// Its path below the package.
    let path: String
    let lines: [Substring]
    /// The declarations of a Swift file.
    let declarations: [SwiftDeclaration]
    /// The names that its code mentions; comments are left out.
    let words: Set<String>

    /// The name without folders and extension.
    var name: String { String(path.split(separator: "/").last?.split(separator: ".").first ?? "") }
    /// The folder below `Sources` or `Tests`.
    var module: String { String(path.split(separator: "/")[1]) }

    /// Returns a place in it, in the form of compilers.
    func place(_ index: Int) -> String { "\(path):\(index + 1)" }
  }

  /// The text of `Package.swift`, without comments.
  let manifest: String
  /// The paths of all files and folders that belong to the package.
  let paths: [String]
  /// The Swift files below `Sources`.
  let sources: [File]
  /// The Swift files below `Tests`.
  let tests: [File]
  /// README.md, the files for GitHub, and the pages of all documentation catalogs.
  let pages: [File]

  private init() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    var paths = try FileManager.default.contentsOfDirectory(atPath: root.path)
    for folder in ["Sources", "Tests", "Config", ".ci", ".github"] {
      paths += try FileManager.default.subpathsOfDirectory(atPath: root.appending(path: folder).path)
        .map { "\(folder)/\($0)" }
    }
    paths.sort()
    self.paths = paths
    manifest = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
      .split(separator: "\n").filter { !$0.isComment }.joined(separator: "\n")
    let files = try paths.filter { $0.hasSuffix(".swift") || $0.hasSuffix(".md") }.map { path in
      let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
      var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
      if lines.last?.isEmpty == true { lines.removeLast() }
      let isSwift = path.hasSuffix(".swift")
      return File(
        path: path, lines: lines, declarations: isSwift ? SwiftDeclaration.all(in: lines) : [],
        words: isSwift ? Set(lines.lazy.filter { !$0.isComment }.flatMap(\.identifiers)) : [])
    }
    sources = files.filter { $0.path.hasPrefix("Sources/") && $0.path.hasSuffix(".swift") }
    tests = files.filter { $0.path.hasPrefix("Tests/") && $0.path.hasSuffix(".swift") }
    pages = files.filter { file in
      file.path.hasSuffix(".md") && ["README.md", "Sources/", ".github/"].contains(where: file.path.hasPrefix)
    }
  }
}
