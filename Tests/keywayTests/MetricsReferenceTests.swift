import Foundation
import Testing

@testable import keyway

@Suite("The table of metrics")
struct MetricsReferenceTests {
  @Test("The table of Metrics.md is what `keyway settings` writes")
  func table() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let page = try String(
      contentsOf: root.appending(path: "Sources/keyway/Documentation.docc/Metrics.md"), encoding: .utf8)
    #expect(page.contains("| `keyway_build_info` |"))
    #expect(page == MetricsReference.metrics(in: page))
  }
}
