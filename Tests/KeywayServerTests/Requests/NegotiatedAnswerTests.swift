import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

/// Resources with two forms at one URL: their responses declare that they depend on `Accept` (RFC 9110 §12.5.5).
@Suite("Answers that depend on Accept") struct NegotiatedAnswerTests {
  private static let negotiated = [
    "/v1/objects/Account/1", "/v1/objects/Account/1/balance", "/v1/objects/Account/9", "/v1/objects/Account",
    "/v1/objects/Account?filter=(", "/v1/streams", "/v1/journal", "/v1/streams/none", "/v1/objects/Account/1/none",
    "/v1/objects/Account/1?keys=x&keys=y", "/v1/objects/Account?%zz=1",
  ]

  @Test("Every answer to GET and HEAD says so, in both forms, with problems and 304", arguments: negotiated)
  func forms(_ target: String) throws {
    let server = try TestServer()
    for accept in ["application/json, application/x-ndjson", "image/png", "text/event-stream"] {
      for method in ["GET", "HEAD"] where method == "HEAD" || accept != "text/event-stream" {
        let answer = try server.client.send(method, target, ["Accept": accept])
        #expect(answer.headers.filter { $0.name == "Vary" }.map(\.value) == ["Accept"], "\(method) \(accept)")
      }
    }
  }

  @Test("A stream, a 304, and an answer to a page of another origin say so, in one line")
  func others() throws {
    let server = try TestServer { $0.access.origins = ["https://app.example.org"] }
    let target = "/v1/objects/Account/1/balance"
    let stream = try server.client.stream(target)
    #expect(stream.head["Vary"] == "Accept, Origin")
    let whole = try server.client.send("GET", target)
    #expect(whole["Vary"] == "Accept, Origin")
    let unchanged = try server.client.send("GET", target, ["If-None-Match": whole["ETag"] ?? ""])
    #expect(unchanged.status == 304 && unchanged["Vary"] == "Accept, Origin")
    #expect(try server.client.send("HEAD", target, ["Accept": "text/event-stream"])["Vary"] == "Accept, Origin")
  }

  @Test("A resource with one form does not, and neither does a write")
  func oneForm() throws {
    let server = try TestServer()
    for target in ["/v1/status", "/v1/entities", "/healthz", "/keyway.js"] {
      #expect(try server.client.send("GET", target)["Vary"] == nil, "\(target)")
    }
    #expect(try server.client.send("PUT", "/v1/objects/Account/1/balance", body: "1")["Vary"] == nil)
    #expect(try server.client.send("OPTIONS", "/v1/objects/Account/1")["Vary"] == nil)
  }
}
