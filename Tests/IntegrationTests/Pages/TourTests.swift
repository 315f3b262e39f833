import Foundation
import TestKit
import Testing

/// Runs the commands of the README and of the page "A tour".
///
/// All marked blocks of a page together are one session of bash (`ConsoleStep`), so aliases, variables, background jobs
/// (` &`), `wait` and files last from one block to the next. `.build/debug/keyway` is the built program too, and an
/// example server with an empty store answers as 127.0.0.1:8080.
///
/// The parts that differ each time are replaced on both sides: the epoch of cursors, `retry:`, UUIDs, the ids of
/// requests, times, durations and rates. A final line end is added if an output has none.
@Suite("The commands of the README and of the tour")
struct TourTests {
  /// A page, with the marker before the blocks that are run.
  enum Page: String, CaseIterable {
    case readme = "README.md"
    case tour = "Sources/keyway/Documentation.docc/Tour.md"

    var marker: String { self == .readme ? "minute" : "tour" }
  }

  private let server: ServerProcess

  init() throws { server = try ServerProcess() }

  @Test("Every command prints what the page says", .timeLimit(.minutes(60)), arguments: Page.allCases)
  func commands(page: Page) throws {
    let text = try String(contentsOfFile: "\(PackageFolder.root)/\(page.rawValue)", encoding: .utf8)
    let steps = ConsoleStep.blocks(of: text, behind: page.marker).flatMap(\.self)
    #expect(!steps.isEmpty, "\(page.rawValue) has no console block behind <!-- \(page.marker) -->")
    let shownEpoch = Self.shownEpoch(in: text)
    let outputs = try run(steps, shownEpoch: shownEpoch)
    for (step, output) in zip(steps, outputs) {
      #expect(
        normalized(output, shownEpoch: shownEpoch) == normalized(step.output, shownEpoch: shownEpoch),
        "$ \(step.command)")
    }
    #expect(outputs.count == steps.count, "the session stops after: $ \(steps[max(0, outputs.count - 1)].command)")
  }

  /// Runs the commands. Returns the output of each, up to the first that did not end.
  private func run(_ steps: [ConsoleStep], shownEpoch: String?) throws -> [String] {
    let epoch = try #require(server.status["epoch"].text)
    let commands = steps.map { step in
      let command = step.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(server.port)")
        .replacing(".build/debug/keyway", with: PackageFolder.keyway)
      guard let shownEpoch else { return command }
      return command.replacing(shownEpoch + "-", with: epoch + "-")
    }
    return try ConsoleStep.run(commands, environment: ["KEYWAY_SERVER": server.url])
  }

  /// Returns the epoch in the outputs on a page.
  private static func shownEpoch(in page: String) -> String? {
    page.firstMatch(of: /(?:^|\n)id: ([a-z][a-z0-9]{3,5})-[0-9]+/).map { String($0.1) }
  }

  private func normalized(_ text: String, shownEpoch: String?) -> String {
    var text = text.isEmpty || text.hasSuffix("\n") ? text : text + "\n"
    text = text.replacing("127.0.0.1:\(server.port)", with: "127.0.0.1:8080")
    if let shownEpoch { text = text.replacing(shownEpoch + "-", with: "EPOCH-") }
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
