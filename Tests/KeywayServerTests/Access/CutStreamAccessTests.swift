import KeyValueModel
import TestKit
import Testing

@Suite("Access to streams whose connection is cut")
struct CutStreamAccessTests {
  private static let cells = #"{"one":{"object":"Account/1","keyPaths":["balance"]},"two":{"object":"Customer/1"}}"#

  @Test("Only who opened a stream resumes it, and admins, for whom it stays that of its owner")
  func owners() throws {
    let server = try GuardedServer.bank()
    let stream = try CuttableStream(server.server, cells: Self.cells, server.ann)
    _ = try stream.next()
    #expect(try server.client.send("GET", stream.url, streaming(server.bob)).problem == "unknown-stream")
    #expect(try server.client.send("GET", stream.url, streaming([:])).problem == "unauthenticated")
    try stream.cut()
    #expect(try server.client.send("GET", stream.url, streaming(server.bob)).problem == "unknown-stream")
    #expect(try server.client.send("DELETE", stream.url, server.bob).problem == "unknown-stream")
    let byAdmin = try server.client.stream(stream.url, server.admin)
    #expect(try byAdmin.next().name == "open")
    let state = try byAdmin.next()
    #expect(state.changes.map { $0["cell"].text }.contains("one"))
    // Events that its owner may not see are not sent to an admin either.
    try stream.send("PUT", "/cells/three", #"{"object":"Account/2","keyPaths":["balance"]}"#)
    #expect(try stream.send("GET", "/cells/three").problem == "unknown-cell")
    #expect(try stream.status() == 200)
    #expect(try server.client.send("GET", stream.url, server.bob).problem == "unknown-stream")
    try stream.resume()
    #expect(try byAdmin.rest().isEmpty)
  }

  @Test("An object that a returning client may no longer read is gone, and is in no replay")
  func lostRights() throws {
    let server = try GuardedServer.bank()
    let stream = try CuttableStream(server.server, cells: Self.cells, server.ann)
    _ = try stream.next()
    try stream.cut()
    try server.client.must("PUT", "/v1/objects/Account/1/balance", server.admin, body: "11")
    try server.client.must("PUT", "/v1/objects/Account/1/owner", server.admin, body: #""Customer/2""#)
    try server.client.must("PUT", "/v1/objects/Account/1/balance", server.admin, body: "12")
    try stream.resume()
    let events = try stream.read { $0.name == "gone" }
    #expect(events.flatMap(\.changes).filter { $0["cell"].text == "one" }.map { $0["new"].whole } == [11])
    #expect(events.last?.json["cell"].text == "one")
  }

  @Test("A stream whose token has expired is resumed with a new one, and asks the rules for that")
  func newToken() throws {
    let server = try GuardedServer.bank()
    let stream = try CuttableStream(
      server.server, cells: #"{"two":{"object":"Account/2","keyPaths":["balance"]}}"#,
      server.bearer("ann", roles: ["teller"]))
    _ = try stream.next()
    try stream.cut()
    let again = try server.client.stream(
      stream.url, server.ann.merging(["Last-Event-ID": stream.cursor ?? ""]) { $1 })
    #expect(try (0..<3).map { _ in try again.next().name } == ["open", "reset", "gone"])
  }

  private func streaming(_ headers: [String: String]) -> [String: String] {
    headers.merging(["Accept": "text/event-stream"]) { $1 }
  }
}
