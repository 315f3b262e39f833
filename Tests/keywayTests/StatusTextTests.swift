import KeyValueModel
import Testing

@testable import keyway

@Suite("keyway status") struct StatusTextTests {
  @Test("the condition stands in the heading, and each member on a line, whatever members there are")
  func lines() throws {
    let json = """
      {"version":"9.9","epoch":"k3f9ab","revision":1234567,"draining":false,
       "memory":{"bytes":1536,"limit":0},"store":{"condition":"recovering","reason":"12 of 20"},"new":{"a":{"b":null}}}
      """
    guard case .object(let status) = try Value(json: json) else { return }
    let lines = StatusText.lines(status, server: "http://127.0.0.1:1")
    #expect(
      lines.map(\.text) == [
        "keyway 9.9 at http://127.0.0.1:1: recovering", "epoch         k3f9ab", "revision      1,234,567",
        "memory.bytes  1.5 KiB", "memory.limit  0 B", "store.reason  12 of 20", "new.a.b       null",
      ])
  }

  @Test("a server that drains, or whose store is unavailable, is no server that serves")
  func conditions() {
    func heading(_ draining: Bool, _ condition: String) -> StyledLine? {
      StatusText.lines(
        ["draining": .bool(draining), "store": .object(["condition": .string(condition)])], server: "s"
      ).first
    }
    #expect(heading(true, "serving")?.text.hasSuffix(": draining") == true)
    #expect(heading(false, "unavailable")?.spans.last?.style == [.bold, .red])
    #expect(heading(false, "serving")?.spans.last?.style == [.bold, .green])
  }

  @Test(
    "bytes are told in the largest unit of which there is one",
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (1_572_864, "1.5 MiB"), (1 << 30, "1.0 GiB"),
      (Int64.max, "7.9 EiB"), (1_048_575, "1023.9 KiB"),
    ] as [(Int64, String)])
  func bytes(_ count: Int64, _ expected: String) {
    #expect(StatusText.bytes(count) == expected)
  }
}
