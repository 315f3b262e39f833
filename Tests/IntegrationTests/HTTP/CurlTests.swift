import TestKit
import Testing

@Suite("curl -N")
struct CurlTests {
  private let server: ServerProcess

  init() throws { server = try ServerProcess() }

  private func curl(_ target: String) throws -> ChildProcess {
    try ChildProcess.start(
      "/usr/bin/curl", ["-sSN", "-H", "Accept: text/event-stream", "\(server.url)/v1/objects/\(target)"])
  }

  /// Returns the block of a change in the form of the specification.
  private func block(_ epoch: String, _ revision: Int, _ data: String) -> [String] {
    ["id: \(epoch)-\(revision)", "event: change", "data: {\"revision\":\(revision),\(data)]}", ""]
  }

  @Test("curl sees the value at once, and then each one that is set, with old and new where they were asked for")
  func keyPath() throws {
    let epoch = try #require(server.status["epoch"].text)
    let start = try server.revision
    let plain = try curl("Account/1/balance")
    let both = try curl("Account/1/balance?options=old,new")
    #expect(try plain.lines(5).first?.wholeMatch(of: /retry: [0-9]+/) != nil)
    #expect(try both.lines(2).count == 2)
    for value in ["120", "-0.5", "120"] { try server.set("Account/1/balance", value) }
    try server.set("Account/1/balance", "120")
    let head = #""object":"Account/1","keyPath":"balance","kind":"setting""#
    let initial = block(epoch, start, #""initial":true,"changes":[{\#(head),"new":100}"#)
    let changes = zip(["100", "120", "-0.5"], ["120", "-0.5", "120"])
    let plainBlocks = changes.enumerated().flatMap { index, change in
      block(epoch, start + index + 1, #""changes":[{\#(head),"new":\#(change.1)}"#)
    }
    let bothBlocks = changes.enumerated().flatMap { index, change in
      block(epoch, start + index + 1, #""changes":[{\#(head),"old":\#(change.0),"new":\#(change.1)}"#)
    }
    // The fourth set leaves the value unchanged, and the key has `notifies: changed`.
    #expect(try plain.lines(17).dropFirst() == (initial + plainBlocks)[...])
    #expect(try both.lines(14).dropFirst(2) == bothBlocks[...])
  }

  @Test("A path follows when the object in its middle is replaced")
  func middle() throws {
    let stream = try curl("Account/1/owner.lastName?options=old,new")
    _ = try stream.lines(2)
    try server.set("Account/1/owner", #""Person/8""#)
    try server.set("Person/7/lastName", #""Byron""#)
    try server.set("Person/8/lastName", #""B.""#)
    let data = try stream.lines(10).filter { $0.hasPrefix("data:") }
    #expect(data.count == 2)
    #expect(data.first?.hasSuffix(#""kind":"setting","old":"Lovelace","new":"Babbage"}]}"#) == true)
    #expect(data.last?.hasSuffix(#""kind":"setting","old":"Babbage","new":"B."}]}"#) == true)
  }

  @Test("curl --json sets, and curl reads what was set")
  func reading() throws {
    let written = try ChildProcess.run(
      "/usr/bin/curl", ["-sS", "-X", "PUT", "--json", "7", "\(server.url)/v1/objects/Account/1/balance"])
    #expect(written.output == "7\n")
    let read = try ChildProcess.run("/usr/bin/curl", ["-sS", "\(server.url)/v1/objects/Account/1?keys=balance,owner"])
    let revision = try server.revision
    #expect(read.output == #"{"@ref":"Account/1","@revision":\#(revision),"balance":7,"owner":"Person/7"}"# + "\n")
  }
}
