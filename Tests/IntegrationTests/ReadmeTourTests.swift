import Foundation
import LoopbackKit
import Testing

/// Runs what README.md shows.
///
/// A ```` ```console ```` block with the line `<!-- tour -->` directly before it is part of the tour. In it, a line
/// that begins with `$ ` is a command, and the lines up to the next command are exactly what it prints, standard error
/// included. All blocks together are one session of bash, so aliases, variables, background jobs (` &`), `wait` and
/// files last from one block to the next. The session runs in a folder of its own where `Config` is the checkout's,
/// `keyway` and `.build/debug/keyway` are the built program, and the example's server answers as 127.0.0.1:8080.
///
/// The parts that differ each time become equal on both sides: the epoch of cursors, `retry:`, UUIDs, the ids of
/// requests, times, durations and rates. A final line end is added where an output has none.
@Suite("The tour of the README")
struct ReadmeTourTests {
  private struct Step {
    let command: String
    var output = ""
  }

  private let readme: String
  private let server: ServerProcess

  init() throws {
    readme = try String(contentsOfFile: PackageFolder.root + "/README.md", encoding: .utf8)
    server = try ServerProcess()
  }

  @Test("Every command of the tour prints what the README says", .timeLimit(.minutes(10)))
  func tour() throws {
    let steps = Self.steps(in: readme)
    #expect(!steps.isEmpty, "README.md has no console block behind <!-- tour -->")
    let outputs = try run(steps)
    for (step, output) in zip(steps, outputs) {
      #expect(normalized(output) == normalized(step.output), "$ \(step.command)")
    }
    #expect(outputs.count == steps.count, "the tour stops after: $ \(steps[max(0, outputs.count - 1)].command)")
  }

  private static func steps(in text: String) -> [Step] {
    var steps: [Step] = []
    var isMarked = false
    var isInside = false
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if isInside {
        if line == "```" {
          isInside = false
        } else if line.hasPrefix("$ ") {
          steps.append(Step(command: String(line.dropFirst(2))))
        } else if !steps.isEmpty {
          steps[steps.count - 1].output += line + "\n"
        }
      } else {
        isInside = isMarked && line == "```console"
      }
      isMarked = line == "<!-- tour -->"
    }
    return steps
  }

  /// What each command printed, up to the first that did not end.
  private func run(_ steps: [Step]) throws -> [String] {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-tour-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try FileManager.default.createSymbolicLink(
      atPath: folder.path + "/Config", withDestinationPath: PackageFolder.root + "/Config")
    let mark = "--\(UUID().uuidString)--"
    let epoch = try #require(server.status["epoch"].text)
    var script = "shopt -s expand_aliases\nexec 2>&1\ntrap 'kill $(jobs -p) 2>/dev/null' EXIT\n"
    for step in steps {
      var command = step.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(server.port)")
        .replacing(".build/debug/keyway", with: PackageFolder.keyway)
      if let shown = shownEpoch { command = command.replacing(shown + "-", with: epoch + "-") }
      script += "\(command)\necho '\(mark)'\n"
    }
    try script.write(to: folder.appendingPathComponent("tour.sh"), atomically: true, encoding: .utf8)
    let bin = URL(fileURLWithPath: PackageFolder.keyway).deletingLastPathComponent().path
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let shell = try ChildProcess.start(
      "/bin/bash", ["tour.sh"], environment: ["PATH": "\(bin):\(path)", "KEYWAY_SERVER": server.url],
      folder: folder.path)
    _ = Deadline(seconds: 60).awaits { !shell.isRunning }
    return shell.output.components(separatedBy: mark + "\n").dropLast().map { $0 }
  }

  /// The epoch in the outputs that the README shows.
  private var shownEpoch: String? {
    readme.firstMatch(of: /(?:^|\n)id: ([a-z][a-z0-9]{3,5})-[0-9]+/).map { String($0.1) }
  }

  private func normalized(_ text: String) -> String {
    var text = text.isEmpty || text.hasSuffix("\n") ? text : text + "\n"
    text = text.replacing("127.0.0.1:\(server.port)", with: "127.0.0.1:8080")
    if let shown = shownEpoch { text = text.replacing(shown + "-", with: "EPOCH-") }
    text = text.replacing(/\b[a-z][a-z2-9]{5}-(?=[0-9]+\b)/, with: "EPOCH-")
    text = text.replacing(/retry: [0-9]+/, with: "retry: N")
    text = text.replacing(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/, with: "UUID")
    text = text.replacing(/\b[0-9a-z]+-[0-9a-f]{32}\b/, with: "STREAM")
    text = text.replacing(/\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)/, with: "TIME")
    text = text.replacing(/\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b/, with: "TIME")
    text = text.replacing(/"requestId":"[^"]*"/, with: #""requestId":"ID""#)
    text = text.replacing(/in [0-9.]+ s \([0-9,]+\/s\)/, with: "in N s (N/s)")
    text = text.replacing(/(?i:\bdate: ).*/, with: "date: DATE")
    return text
  }
}
