import KeyValueModel
import KeywayAPI
import LoopbackKit
import ModelStore
import Testing

@Suite("Live queries that cost more than a commit has", .timeLimit(.minutes(60)))
struct QueryShareTests {
  private static let costly = "balance > 0.0 && [1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0].all(x, x < balance + 100.0)"

  private func target(_ filter: String) -> String { Staff.target("Account", ["filter": filter, "keys": "balance"]) }

  @Test("The greedy client's end with overflow and resume; another client's is told by the same commit")
  func share() throws {
    let server = try TestServer { $0.store.queryCommitCost = 500 }
    let greedy = try (0..<30).map { try server.client.stream(target("\(Self.costly) && balance > -\($0).0")) }
    for stream in greedy { #expect(try stream.next().name == "results") }
    let modest = try server.client(from: "127.0.0.2").stream(target("balance > 0.0"))
    #expect(try modest.next().json["count"].whole == 2)
    let cursor = "\(server.epoch)-\(try server.revision)"
    try server.set("Account/1/balance", "101")
    let told = try modest.next()
    #expect(told.name == "content" && told.json["changes"].items.map { $0["object"].text } == ["Account/1"])
    let outcomes = try greedy.map { stream in
      let event = try stream.next()
      return event.name == "bye" ? event.json["reason"].text : event.name ?? ""
    }
    #expect(Set(outcomes) == ["content", "overflow"])
    // Who comes back receives what was missed.
    let ended = try #require(outcomes.firstIndex(of: "overflow"))
    let back = try server.client.stream(
      target("\(Self.costly) && balance > -\(ended).0"), ["Last-Event-ID": cursor])
    let missed = try back.next()
    #expect(missed.name == "content" && missed.json["revision"] == told.json["revision"])
    #expect(missed.json["changes"].items.map { $0["value"] } == told.json["changes"].items.map { $0["value"] })
    try server.set("Account/1/balance", "102")
    #expect(try modest.next().name == "content")
  }
}
