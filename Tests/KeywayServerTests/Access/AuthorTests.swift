import KeyValueModel
import Store
import TestKit
import Testing

@Suite("Authors of transactions")
struct AuthorTests {
  private static let schema = """
    access: { read: 'true', create: identity != null, update: identity != null, delete: identity != null }
    entities:
      Note: { keys: { text: { type: string } } }
    """

  private static func authors(_ lines: [String]) throws -> [String] {
    try lines.map { try Value(json: $0)["by"].text ?? "-" }
  }

  @Test("The journal has the sub of who wrote a transaction, in JSON and as a stream, also after a restart")
  func journal() throws {
    let journal = MemoryJournal(identity: JournalIdentity(epoch: "test", schema: ""))
    let guarded = try GuardedServer(journal: journal, schema: Self.schema, objects: [])
    let stream = try guarded.client.stream("/v1/journal", guarded.admin)
    _ = try stream.block()
    try guarded.client.must("PUT", "/v1/objects/Note/1", guarded.ann, body: "{}")
    try guarded.client.must("PUT", "/v1/objects/Note/1/text", guarded.bob, body: #""x""#)
    let name = #"{"op":"delete","object":"Note/1"}"#
    try guarded.client.must(
      "POST", "/v1/transactions", guarded.bearer("q\"\n\u{e9}"), body: "{\"operations\":[\(name)]}")
    try guarded.client.must(
      "PUT", "/v1/objects/Note/2", guarded.admin.merging(["Keyway-Lifetime": "1"]) { $1 }, body: "{}")
    let expected = ["ann", "bob", "q\"\n\u{e9}", "root", "-"]
    // The last is the lease expiry, which the server writes itself.
    let told = try (0..<expected.count).map { _ in try first("transaction", of: stream).data ?? "" }
    #expect(try Self.authors(told) == expected)
    let read = try guarded.client.must("GET", "/v1/journal", guarded.admin).text.split(separator: "\n").map(String.init)
    #expect(read == told)
    #expect(try guarded.client.send("GET", "/v1/journal", guarded.ann).status == 403)
    // The same, byte for byte, from the journal's records, on any server that has the journal.
    let records = try journal.records(after: 0, limit: 100, bytes: 1 << 20, waiting: .zero)
    let kept = try records.map { try $0.transaction() }
    #expect(kept.map { $0.author ?? "-" } == expected)
  }
}
