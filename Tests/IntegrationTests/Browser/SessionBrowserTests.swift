import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Sessions in Chromium") struct SessionBrowserTests {
  @Test("Pages of the server and of a listed origin read, write and stream by the cookie; others do none of it")
  func origins() throws {
    let folder = try ScratchDirectory()
    let keys = folder.path + "/keys.json"
    func keyway(_ arguments: String...) throws -> String {
      let process = try ChildProcess.start(PackageFolder.keyway, arguments)
      #expect(try process.exitStatus() == 0)
      return process.output.trimmingCharacters(in: .newlines)
    }
    _ = try keyway("token", "--new-key", "--keys", keys)
    let token = try keyway("token", "--keys", keys, "--sub", "ann", "--claim", #"roles=["keyway-admin"]"#)
    let (listed, other) = (try LoopbackPort.free(), try LoopbackPort.free())
    let server = try ServerProcess(
      "--schema", PackageFolder.root + "/Config/access/feed.yaml",
      settings: ["access.keys": keys, "access.origins": "http://127.0.0.1:\(listed)"])
    let admin = ["Authorization": "Bearer \(token)"]
    try server.client.must("PUT", "/v1/objects/Post/1", admin, body: #"{"author":"ann"}"#)
    try server.client.must("PUT", "/v1/objects/Post/1/text", admin, body: #""0""#)
    let browser = try ChildProcess.start(
      PackageFolder.python,
      [PackageFolder.script("session.py"), server.url, token, "/v1/objects/Post/1/flagged", "\(listed)", "\(other)"])
    #expect(try browser.exitStatus() == 0)
    let results = browser.output.split(separator: "\n").map { (try? Value(json: String($0))) ?? .null }
    #expect(results.count == 3)
    for (index, result) in results.enumerated() {
      let isTrusted = index < 2
      #expect(result["session"] == (isTrusted ? .integer(204) : .string("refused")), "\(index): \(result)")
      #expect((result["read"] == .string("refused")) == !isTrusted, "\(index): \(result)")
      #expect((result["write"] == .string("refused")) == !isTrusted, "\(index): \(result)")
      #expect((result["stream"] == .string("refused")) == !isTrusted, "\(index): \(result)")
    }
    // Two sessions began and two pages wrote; the refused requests changed nothing.
    let status = try server.client.must("GET", "/v1/status", admin).json
    #expect(status["revision"].whole == 6)
    #expect(try server.stop() == 0)
  }
}
