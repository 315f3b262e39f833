import Foundation
import TestKit
import Testing

/// `Config/deploy/keyway.service` against systemd's own checks and the program's.
@Suite("The service of systemd")
struct ServiceUnitTests {
  private let scratch: ScratchDirectory
  private let text: String

  init() throws {
    scratch = try ScratchDirectory()
    text = try String(contentsOfFile: PackageFolder.root + "/Config/deploy/keyway.service", encoding: .utf8)
  }

  private func analyze(_ arguments: String...) throws -> (status: Int32, output: String) {
    // The program is not in the place that the service names.
    let unit = text.replacing("/usr/local/bin/keyway", with: PackageFolder.keyway)
    let file = try scratch.write(unit, to: "keyway.service")
    let outcome = try ChildProcess.run(
      ChildProcess.find("systemd-analyze") ?? "/usr/bin/systemd-analyze", arguments + [file])
    return (outcome.status, outcome.output + outcome.errors)
  }

  @Test("systemd-analyze finds nothing wrong with it, and little that it exposes")
  func analysis() throws {
    let verified = try analyze("verify")
    #expect(verified.status == 0, "\(verified.output)")
    // systemd checks other services of the machine too.
    let findings = verified.output.split(separator: "\n").filter { $0.contains("keyway.service") }
    #expect(findings == [])
    let security = try analyze("security", "--offline=true", "--no-pager", "--threshold=15")
    #expect(security.status == 0, "\(security.output)")
  }

  @Test("Its command is one that the program takes")
  func command() throws {
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("ExecStart=") })
    let settings = try scratch.write("heartbeat: {seconds: 7}\n", to: "keyway.yaml")
    let words = line.dropFirst("ExecStart=".count).split(separator: " ").map { word in
      String(word).replacing("/etc/keyway/keyway.yaml", with: settings)
        .replacing("/etc/keyway/schema.yaml", with: PackageFolder.schema)
    }
    let outcome = try ChildProcess.run(PackageFolder.keyway, Array(words.dropFirst()) + ["--print-config"])
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output.contains("/var/lib/keyway/store"))
    #expect(outcome.output.contains("seconds: 7"))
  }
}
