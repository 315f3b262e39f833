import Foundation
import TestKit
import Testing

/// Runs the commands that the page "Many nodes" shows.
@Suite("The page about many nodes") struct ManyNodesPageTests {
  @Test("Every command prints what the page says", .timeLimit(.minutes(60)))
  func commands() throws {
    let page = PackageFolder.root + "/Sources/keyway/Documentation.docc/ManyNodes.md"
    let text = try String(contentsOfFile: page, encoding: .utf8)
    let steps = ConsoleStep.blocks(of: text, behind: "nodes").flatMap { $0 }
    try #require(steps.count > 20)
    let ports = try ["8081", "8082", "8083"].map { ($0, "\(try LoopbackPort.free())") }
    func replaced(_ text: String) -> String {
      ports.reduce(text) { $0.replacing($1.0, with: $1.1) }
    }
    let outputs = try ConsoleStep.run(steps.map { replaced($0.command) })
    #expect(outputs.count == steps.count, "it stops after: $ \(steps[max(0, outputs.count - 1)].command)")
    for (step, output) in zip(steps, outputs) {
      #expect(output == replaced(step.output), "$ \(step.command)")
    }
  }
}
