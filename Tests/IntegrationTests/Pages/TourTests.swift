import Foundation
import TestKit
import Testing

/// Runs what README.md shows.
///
/// All blocks behind `<!-- tour -->` together are one session of bash (`ConsoleStep`), so aliases, variables,
/// background jobs (` &`), `wait` and files last from one block to the next. `.build/debug/keyway` is the built program
/// too, and the example's server answers as 127.0.0.1:8080.
///
/// The parts that differ each time become equal on both sides: the epoch of cursors, `retry:`, UUIDs, the ids of
/// requests, times, durations and rates. A final line end is added where an output has none.
@Suite("The tour of the README")
struct ReadmeTourTests {
  private let readme: String
  private let server: ServerProcess

  init() throws {
    readme = try String(contentsOfFile: PackageFolder.root + "/README.md", encoding: .utf8)
    server = try ServerProcess()
  }

  @Test("Every command of the tour prints what the README says", .timeLimit(.minutes(60)))
  func tour() throws {
    let steps = ConsoleStep.blocks(of: readme, behind: "tour").flatMap(\.self)
    #expect(!steps.isEmpty, "README.md has no console block behind <!-- tour -->")
    let outputs = try run(steps)
    for (step, output) in zip(steps, outputs) {
      #expect(normalized(output) == normalized(step.output), "$ \(step.command)")
    }
    #expect(outputs.count == steps.count, "the tour stops after: $ \(steps[max(0, outputs.count - 1)].command)")
  }

  /// What each command printed, up to the first that did not end.
  private func run(_ steps: [ConsoleStep]) throws -> [String] {
    let epoch = try #require(server.status["epoch"].text)
    let commands = steps.map { step in
      let command = step.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(server.port)")
        .replacing(".build/debug/keyway", with: PackageFolder.keyway)
      guard let shown = shownEpoch else { return command }
      return command.replacing(shown + "-", with: epoch + "-")
    }
    return try ConsoleStep.run(commands, environment: ["KEYWAY_SERVER": server.url])
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
