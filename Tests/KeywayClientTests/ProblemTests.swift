import Testing

@testable import KeywayClient

@Suite("The client's reading of responses and paths")
struct ProblemTests {
  @Test("a problem document becomes one readable line")
  func problem() {
    let body = """
      {"type":"/v1/problems/undefined-key","title":"Undefined key","status":404,"detail":"Account has no key balnce",
       "object":"Account/1","keyPath":"balnce"}
      """
    let problem = Problem(ClientResponse(status: 404, body: Array(body.utf8)))
    #expect(problem.code == "undefined-key")
    #expect(problem.description == "404 undefined-key: Account has no key balnce (Account/1 balnce)")
  }

  @Test("an answer that is no problem document still tells its status", arguments: ["", "<html>", "[1]"])
  func noProblem(_ body: String) {
    #expect(Problem(ClientResponse(status: 502, body: Array(body.utf8))).description == "502")
  }

  @Test(
    "paths are made of references and key paths",
    arguments: [
      ("Account/1", nil, "/v1/objects/Account/1"),
      ("Account/1", "owner.fullName", "/v1/objects/Account/1/owner.fullName"),
      ("Department/1", "employees.@sum.salary", "/v1/objects/Department/1/employees.@sum.salary"),
      ("Employee?filter=salary > 1000&limit=5", nil, "/v1/objects/Employee?filter=salary%20%3E%201000&limit=5"),
      ("Employee?filter=a%20b", nil, "/v1/objects/Employee?filter=a%20b"),
      ("Account/1?options=new", "balance", "/v1/objects/Account/1/balance?options=new"),
      ("/v1/status", nil, "/v1/status"),
    ] as [(String, String?, String)])
  func path(text: String, keyPath: String?, expected: String) {
    #expect(ResourcePath.path(text, keyPath: keyPath) == expected)
  }

  @Test("parameters are added with their encoding, and nil ones left out")
  func parameters() {
    let path = ResourcePath.adding([("options", "old,new"), ("since", nil), ("context", "a&b")], to: "/x")
    #expect(path == "/x?options=old,new&context=a%26b")
  }

  @Test("an address that is no server is refused", arguments: ["", "127.0.0.1:8080", "ftp://host", "http://"])
  func server(_ address: String) {
    #expect(throws: ClientError.invalidServer(address)) { try Client(server: address) }
  }
}
