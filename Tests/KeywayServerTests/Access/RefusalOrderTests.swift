import KeyValueModel
import TestKit
import Testing

/// The precedence of refusals of a write with several mistakes (the specification, section 11).
@Suite("Rules before conditions and values")
struct RefusalOrderTests {
  /// Writes that a teller may not make, each with another mistake.
  private static let forbidden: [(method: String, target: String, body: String, headers: [String: String])] = [
    ("PUT", "Account/1/balance", "-1", ["If-Match": "\"x-1\""]),
    ("PATCH", "Account/1", #"{"balance":-1}"#, ["If-Match": "\"x-1\""]),
    ("PATCH", "Account/1", #"{"balance":-1,"note":7}"#, [:]),
    ("PATCH", "Account/1", #"{"owner":"Customer/9","balance":-1}"#, [:]),
    ("PUT", "News/1/about.balance", "-1", ["If-Match": "\"x-1\""]),
    ("POST", "News", #"{"by":"ann"}"#, ["If-Match": "\"x-1\""]),
  ]

  @Test("The rules come before conditions and values: of what a write would make, and of what it would change")
  func rulesFirst() throws {
    let bank = try GuardedServer.bank()
    let cursor = bank.cursor
    for (method, target, body, headers) in Self.forbidden {
      let answer = try bank.client.send(
        method, "/v1/objects/\(target)", bank.teller.merging(headers) { $1 }, body: body)
      #expect(answer.problem == "forbidden", "\(method) \(target) \(body): \(answer.text)")
    }
    // The value rules apply to the result of all operations together.
    func transact(_ operations: String..., by headers: [String: String], match tag: String? = nil) throws
      -> WireResponse
    {
      try bank.client.send(
        "POST", "/v1/transactions", headers.merging(tag.map { ["If-Match": $0] } ?? [:]) { $1 },
        body: "{\"operations\":[\(operations.joined(separator: ","))]}")
    }
    let debt = #"{"op":"set","object":"Account/1","keyPath":"balance","value":-1}"#
    let credit = #"{"op":"set","object":"Account/1","keyPath":"balance","value":1}"#
    let stale = #"{"op":"require","object":"Account/1","revision":0}"#
    let refused = try transact(credit, debt, stale, by: bank.teller)
    #expect(refused.problem == "forbidden" && refused.json["operation"].whole == 0)
    #expect(try transact(debt, credit, stale, by: bank.teller).problem == "stale-revision")
    #expect(try transact(debt, by: bank.teller, match: "\"x-1\"").problem == "forbidden")
    #expect(try transact(credit, by: bank.teller, match: "\"x-1\"").problem == "stale-revision")
    let gift = #"{"op":"set","object":"News/1","keyPath":"by","value":"bob"}"#
    let deletion = #"{"op":"delete","object":"News/1"}"#
    let old = #"{"op":"require","object":"News/1","revision":0}"#
    #expect(try transact(gift, old, by: bank.ann).problem == "forbidden")
    #expect(try transact(gift, deletion, old, by: bank.ann).problem == "stale-revision")
    #expect(bank.cursor == cursor)
  }
}
