import Foundation
import TestKit

/// A command of a page, and its output on the page.
///
/// A test runs each ```` ```console ```` block with a marker such as `<!-- tour -->` directly before it. In it, a line
/// that begins with `$ ` is a command, and the lines up to the next command are exactly what it prints, standard error
/// included.
struct ConsoleStep {
  let command: String
  var output = ""

  /// Returns the steps of each block after a marker, in their order.
  static func blocks(of text: String, behind marker: String) -> [[ConsoleStep]] {
    var blocks: [[ConsoleStep]] = []
    var steps: [ConsoleStep] = []
    var isMarked = false
    var isInside = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if isInside {
        if line == "```" {
          isInside = false
          blocks.append(steps)
          steps = []
        } else if line.hasPrefix("$ ") {
          steps.append(ConsoleStep(command: String(line.dropFirst(2))))
        } else if !steps.isEmpty {
          steps[steps.count - 1].output += line + "\n"
        }
      } else {
        isInside = isMarked && line == "```console"
      }
      isMarked = line == "<!-- \(marker) -->"
    }
    return blocks
  }

  /// Runs the commands in one session of bash, in a folder of its own where `Config` is the checkout's and `keyway` the
  /// built program. Returns the output of each, up to the first that does not end.
  static func run(_ commands: [String], environment: [String: String] = [:]) throws -> [String] {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-tour-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/Config", withDestinationPath: PackageFolder.root + "/Config")
    let mark = "--\(UUID().uuidString)--"
    var script = "shopt -s expand_aliases\nexec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
    for command in commands { script += "\(command)\necho '\(mark)'\n" }
    try script.write(to: folder.appendingPathComponent("tour.sh"), atomically: true, encoding: .utf8)
    let bin = URL(fileURLWithPath: PackageFolder.keyway).deletingLastPathComponent().path
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let shell = try ChildProcess.start(
      "/bin/bash", ["tour.sh"], environment: ["PATH": "\(bin):\(path)"].merging(environment) { $1 },
      folder: folder.path)
    _ = Deadline().awaits { !shell.isRunning }
    return shell.output.components(separatedBy: mark + "\n").dropLast().map { $0 }
  }
}
