import Foundation
import TestKit
import Testing

/// Runs what the page "Operating" shows: all blocks behind `<!-- operating -->` are one session of bash.
@Suite("The page Operating") struct OperatingPageTests {
  private let page: String

  init() throws {
    let path = PackageFolder.root + "/Sources/keyway/Documentation.docc/Operating.md"
    page = try String(contentsOfFile: path, encoding: .utf8)
  }

  @Test("Every command prints what the page says, but for times, sizes and epochs", .timeLimit(.minutes(60)))
  func session() throws {
    let steps = ConsoleStep.blocks(of: page, behind: "operating").flatMap(\.self)
    #expect(steps.count > 20)
    let port = try LoopbackPort.free()
    // The project's file says 8080; the environment is over it.
    let outputs = try ConsoleStep.run(
      steps.map { $0.command.replacing("127.0.0.1:8080", with: "127.0.0.1:\(port)") },
      environment: ["KEYWAY_PORT": "\(port)"])
    for (step, output) in zip(steps, outputs) {
      #expect(Self.normalized(output) == Self.normalized(step.output), "$ \(step.command)")
    }
    #expect(outputs.count == steps.count, "the session stops after: $ \(steps[max(0, outputs.count - 1)].command)")
  }

  @Test("The metrics that the page names are there")
  func metrics() throws {
    let server = try ServerProcess()
    try server.client.must("GET", "/v1/status")
    let there = Set(
      try server.client.must("GET", "/metrics").text.matches(of: /(?m)^# TYPE (keyway_\w+)/).map { String($0.1) })
    let named = Set(page.matches(of: /`(keyway_\w+)`/).map { String($0.1) })
    #expect(named.count > 10)
    // Conditions have their lines once one has begun.
    #expect(named.subtracting(there).isSubset(of: ["keyway_conditions_total", "keyway_condition_active"]))
  }

  @Test("The settings that the page says can change are those that do")
  func reloadable() throws {
    let start = try #require(page.range(of: "It takes over "))
    let end = try #require(page.range(of: "also where its name is the same"))
    let named = page[start.upperBound..<end.lowerBound].matches(of: /`([a-z]+(?:\.[a-zA-Z]+)?)`/).map { String($0.1) }
    let source = try String(
      contentsOfFile: PackageFolder.root + "/Sources/keyway/Serve/RunningSettings.swift", encoding: .utf8)
    let list = try #require(source.firstMatch(of: /static let reloadable: Set<String> = \[([^\]]*)\]/)).1
    let taken = list.matches(of: /"([^"]+)"/).map { String($0.1) }
    #expect(Set(named) == Set(taken) && !taken.isEmpty)
  }

  private static func normalized(_ text: String) -> String {
    text.replacing(/\b[a-z][a-z0-9]{5}(?=-[0-9]+\b)/, with: "EPOCH")
      .replacing(/revision 2 of [a-z0-9]+; the epoch is [a-z0-9]+ now/, with: "EPOCHS")
      .replacing(/replaced-[0-9]{8}T[0-9]{6}Z/, with: "replaced-TIME")
      .replacing(/[0-9]+ bytes, [0-9.]+ s/, with: "N bytes, N s")
  }
}
