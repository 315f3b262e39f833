import Foundation
import TestKit
import Testing

/// Runs the commands that pages show, and compares their output. A comment such as `<!-- operating -->` before a block
/// of a page marks it to be run.
@Suite("The commands of the pages") struct PageTests {
  /// Returns the text of a page of the documentation.
  private static func text(of page: String) throws -> String {
    try String(
      contentsOfFile: PackageFolder.root + "/Sources/keyway/Documentation.docc/\(page).md", encoding: .utf8)
  }

  // MARK: Access

  @Test("Access: every command of each set-up prints what the page says", .timeLimit(.minutes(60)), arguments: 0..<3)
  func access(number: Int) throws {
    let blocks = ConsoleStep.blocks(of: try Self.text(of: "Access"), behind: "setup")
    try #require(blocks.count == 3)
    let steps = blocks[number]
    let port = try LoopbackPort.free()
    let commands = steps.map { $0.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(port)") }
    let outputs = try ConsoleStep.run(commands, environment: ["KEYWAY_PORT": "\(port)"])
    #expect(outputs.count == steps.count, "the set-up stops after: $ \(steps[max(0, outputs.count - 1)].command)")
    for (step, output) in zip(steps, outputs) {
      #expect(Self.normalizedAccess(output) == Self.normalizedAccess(step.output), "$ \(step.command)")
    }
  }

  /// Replaces the parts that differ each time: revisions' epochs, and the ids that the server makes.
  private static func normalizedAccess(_ text: String) -> String {
    text.replacing(/\b[a-z][a-z2-9]{5}-(?=[0-9]+\b)/, with: "EPOCH-")
      .replacing(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/, with: "UUID")
      .replacing(/retry: [0-9]+/, with: "retry: N")
      .replacing(/"requestId":"[^"]*"/, with: #""requestId":"ID""#)
      .trimmingCharacters(in: .newlines)
  }

  // MARK: Many nodes

  @Test("Many nodes: every command prints what the page says", .timeLimit(.minutes(60)))
  func manyNodes() throws {
    let steps = ConsoleStep.blocks(of: try Self.text(of: "ManyNodes"), behind: "nodes").flatMap { $0 }
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

  // MARK: Operating

  @Test("Operating: every command prints what the page says, but for times, sizes and epochs", .timeLimit(.minutes(60)))
  func operating() throws {
    let steps = ConsoleStep.blocks(of: try Self.text(of: "Operating"), behind: "operating").flatMap(\.self)
    #expect(steps.count > 20)
    let port = try LoopbackPort.free()
    // The project's file has port 8080; the environment overrides it.
    let outputs = try ConsoleStep.run(
      steps.map { $0.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(port)") },
      environment: ["KEYWAY_PORT": "\(port)"])
    for (step, output) in zip(steps, outputs) {
      #expect(Self.normalized(output) == Self.normalized(step.output), "$ \(step.command)")
    }
    #expect(outputs.count == steps.count, "the session stops after: $ \(steps[max(0, outputs.count - 1)].command)")
  }

  @Test("Operating: the metrics that the page names are there")
  func metrics() throws {
    let page = try Self.text(of: "Operating")
    let server = try ServerProcess()
    try server.client.must("GET", "/v1/status")
    let there = Set(
      try server.client.must("GET", "/metrics").text.matches(of: /(?m)^# TYPE (keyway_\w+)/).map { String($0.1) })
    let named = Set(page.matches(of: /`(keyway_\w+)`/).map { String($0.1) })
    #expect(named.count > 10)
    // The metrics of conditions appear once one has begun.
    #expect(named.subtracting(there).isSubset(of: ["keyway_conditions_total", "keyway_condition_active"]))
  }

  @Test("Operating: the settings that the page says can change are those that do")
  func reloadable() throws {
    let page = try Self.text(of: "Operating")
    let start = try #require(page.range(of: "A running server applies these settings: "))
    let end = try #require(page.range(of: ". For `public`"))
    let named = page[start.upperBound..<end.lowerBound].matches(of: /`([a-z]+(?:\.[a-zA-Z]+)?)`/).map { String($0.1) }
    let source = try String(
      contentsOfFile: PackageFolder.root + "/Sources/keyway/Serve/RunningSettings.swift", encoding: .utf8)
    let list = try #require(source.firstMatch(of: /static let reloadable: Set<String> = \[([^\]]*)\]/)).1
    let taken = list.matches(of: /"([^"]+)"/).map { String($0.1) }
    #expect(Set(named) == Set(taken) && !taken.isEmpty)
  }

  /// Replaces the parts that differ each time.
  private static func normalized(_ text: String) -> String {
    text.replacing(/\b[a-z][a-z0-9]{5}(?=-[0-9]+\b)/, with: "EPOCH")
      .replacing(/revision 2 of [a-z0-9]+; the epoch is [a-z0-9]+ now/, with: "EPOCHS")
      .replacing(/replaced-[0-9]{8}T[0-9]{6}Z/, with: "replaced-TIME")
      .replacing(/[0-9]+ bytes, [0-9.]+ s/, with: "N bytes, N s")
  }
}
