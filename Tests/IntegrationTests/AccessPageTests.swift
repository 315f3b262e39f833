import Foundation
import TestKit
import Testing

/// Runs the set-ups that the page "Access" shows: each block behind `<!-- setup -->` is one, from an empty folder on.
@Suite("The set-ups of the page about access") struct AccessPageTests {
  @Test("Every command of each set-up prints what the page says", .timeLimit(.minutes(60)), arguments: 0..<3)
  func setup(number: Int) throws {
    let page = PackageFolder.root + "/Sources/keyway/Documentation.docc/Access.md"
    let blocks = ConsoleStep.blocks(of: try String(contentsOfFile: page, encoding: .utf8), behind: "setup")
    try #require(blocks.count == 3)
    let steps = blocks[number]
    let port = try LoopbackPort.free()
    let commands = steps.map { $0.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(port)") }
    let outputs = try ConsoleStep.run(commands, environment: ["KEYWAY_PORT": "\(port)"])
    #expect(outputs.count == steps.count, "the set-up stops after: $ \(steps[max(0, outputs.count - 1)].command)")
    for (step, output) in zip(steps, outputs) {
      #expect(Self.normalized(output) == Self.normalized(step.output), "$ \(step.command)")
    }
  }

  /// What differs each time becomes equal: revisions' epochs, and the ids that the server makes.
  private static func normalized(_ text: String) -> String {
    text.replacing(/\b[a-z][a-z2-9]{5}-(?=[0-9]+\b)/, with: "EPOCH-")
      .replacing(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/, with: "UUID")
      .replacing(/retry: [0-9]+/, with: "retry: N")
      .replacing(/"requestId":"[^"]*"/, with: #""requestId":"ID""#)
      .trimmingCharacters(in: .newlines)
  }
}
