import Cluster
import TestKit
import Testing

@testable import KeywayServer

@Suite("Routes and methods")
struct RouteTableTests {
  static let table: [(target: String, allow: String)] = [
    ("/healthz", "GET, HEAD, OPTIONS"),
    ("/readyz", "GET, HEAD, OPTIONS"),
    ("/metrics", "GET, HEAD, OPTIONS"),
    ("/", "GET, HEAD, OPTIONS"),
    ("/favicon.ico", "GET, HEAD, OPTIONS"),
    ("/keyway.js", "GET, HEAD, OPTIONS"),
    ("/keyway.d.ts", "GET, HEAD, OPTIONS"),
    ("/console", "GET, HEAD, OPTIONS"),
    ("/console/", "GET, HEAD, OPTIONS"),
    ("/console/index.html", "GET, HEAD, OPTIONS"),
    ("/v1/status", "GET, HEAD, OPTIONS"),
    ("/v1/entities", "GET, HEAD, OPTIONS"),
    ("/v1/entities/Account", "GET, HEAD, OPTIONS"),
    ("/v1/openapi.json", "GET, HEAD, OPTIONS"),
    ("/v1/access/accounts", "GET, HEAD, OPTIONS"), ("/v1/access/accounts/ann", "GET, HEAD, PUT, DELETE, OPTIONS"),
    ("/v1/access/revocations", "GET, HEAD, OPTIONS"),
    ("/v1/nodes", "GET, HEAD, OPTIONS"),
    ("/v1/nodes/snapshot", "GET, HEAD, OPTIONS"),
    ("/v1/nodes/records", "GET, HEAD, OPTIONS"),
    ("/v1/nodes/revocations", "GET, HEAD, OPTIONS"),
    ("/v1/nodes/streams", "POST, OPTIONS"),
    ("/v1/nodes/writes", "POST, OPTIONS"),
    ("/v1/nodes/streams/x", "GET, HEAD, OPTIONS"),
    ("/v1/access/revocations/alice", "GET, HEAD, PUT, DELETE, OPTIONS"),
    ("/v1/problems/not-found", "GET, HEAD, OPTIONS"),
    ("/v1/session", "GET, HEAD, POST, DELETE, OPTIONS"),
    ("/v1/objects", "GET, HEAD, OPTIONS"),
    ("/v1/objects/Account", "GET, HEAD, POST, OPTIONS"),
    ("/v1/objects/Account/1", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
    ("/v1/objects/Account/1/balance", "GET, HEAD, PUT, POST, DELETE, OPTIONS"),
    ("/v1/transactions", "POST, OPTIONS"),
    ("/v1/journal", "GET, HEAD, OPTIONS"),
    ("/v1/streams", "GET, HEAD, POST, OPTIONS"),
    ("/v1/streams/x", "GET, HEAD, DELETE, OPTIONS"),
    ("/v1/streams/x/cells", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
    ("/v1/streams/x/cells/a", "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"),
  ]

  static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY"]

  @Test("OPTIONS names the methods of every resource, and the others are 405 with the same Allow")
  func everyRouteAndMethod() throws {
    let server = try TestServer { $0.cluster.followers = true }
    let before = try server.revision
    for (target, allow) in Self.table {
      let options = try server.client.send("OPTIONS", target)
      #expect(options.status == 204, "OPTIONS \(target)")
      #expect(options["Allow"] == allow, "OPTIONS \(target)")
      #expect((options["Accept-Patch"] != nil) == allow.contains("PATCH"), "OPTIONS \(target)")
      let allowed = allow.split(separator: ",").map { $0.drop { $0 == " " } }
      for method in Self.methods where !allowed.contains(Substring(method)) {
        let response = try server.client.send(method, target)
        #expect(response.status == 405, "\(method) \(target)")
        #expect(response["Allow"] == allow, "\(method) \(target)")
        #expect(method == "HEAD" || response.problem == "method-not-allowed", "\(method) \(target)")
      }
    }
    #expect(try server.revision == before)
  }

  @Test("HEAD has the status and the headers of GET and no body")
  func headIsGetWithoutBody() throws {
    let server = try TestServer { $0.cluster.followers = true }
    for (target, allow) in Self.table where allow.contains("GET") {
      let get = try server.client.send("GET", target)
      let head = try server.client.send("HEAD", target)
      #expect(head.status == get.status, "\(target)")
      for name in ["Content-Type", "ETag", "Keyway-Cursor"] { #expect(head[name] == get[name], "\(target) \(name)") }
      if target != "/metrics" { #expect(head["Content-Length"] == get["Content-Length"], "\(target)") }
    }
  }

  @Test("HEAD of a stream answers its headers and opens nothing")
  func headOfStream() throws {
    let server = try TestServer()
    for target in ["/v1/objects/Account/1", "/v1/objects/Account/1/balance", "/v1/streams", "/v1/journal"] {
      let head = try server.client.send("HEAD", target, ["Accept": "text/event-stream"])
      #expect(head.status == 200)
      #expect(head["Content-Type"] == "text/event-stream; charset=utf-8")
    }
    #expect(try server.client.json("/v1/status")["streams"].whole == 0)
  }

  @Test(
    "Paths that name no resource are not-found",
    arguments: [
      "/index.html", "/v1", "/v1/", "/v2/objects/Account", "/v1/object", "/v1/objects/Account/1/balance/x", "/healthz/",
      "/v1/streams/x/rows", "/v1/streams/x/cells/a/b", "/v1/transactions/1", "/V1/status",
    ])
  func unknownPath(_ target: String) throws {
    let response = try TestServer(objects: []).client.send("GET", target)
    #expect(response.status == 404)
    #expect(response.problem == "not-found")
  }

  @Test(
    "A route without parameters ignores all of them, malformed ones too; a route with parameters refuses these",
    arguments: ["a=1&a=2", "q=%E4", "%zz", "a=%", "utm_source=x&utm_source=y"])
  func ignoredQuery(_ query: String) throws {
    let server = try TestServer()
    for path in [
      "/healthz", "/readyz", "/metrics", "/", "/keyway.js", "/console/", "/favicon.ico", "/v1/status", "/v1/entities",
      "/v1/problems/not-found",
    ] {
      #expect(try (200..<300).contains(server.client.send("GET", "\(path)?\(query)").status), "\(path)")
    }
    #expect(try server.client.send("OPTIONS", "/v1/objects/Note?\(query)").status == 204)
    #expect(try server.client.send("GET", "/nothing?\(query)").problem == "not-found")
    for path in ["/v1/objects/Note", "/v1/objects/Note/1", "/v1/objects/Note/1/text", "/v1/streams", "/v1/journal"] {
      let answer = try server.client.send("GET", "\(path)?\(query)")
      #expect(answer.status == 400 && answer.problem == "malformed-query", "\(path)")
    }
    let before = try server.revision
    #expect(try server.client.send("DELETE", "/v1/objects/Note/1?\(query)").problem == "malformed-query")
    #expect(try server.revision == before)
  }

  @Test("Every problem code has a page, and every page is one of the specification's")
  func problemPages() throws {
    let server = try TestServer(objects: [])
    for code in [
      "index-out-of-range", "not-a-collection", "range-not-satisfiable", "unobservable-key-path", "patch-test-failed",
      "too-many-objects",
    ] {
      #expect(try server.client.send("GET", "/v1/problems/\(code)").status == 200, "\(code)")
    }
    for code in ["malformed-json", "unknown-object", "stale-revision", "method-not-allowed", "misdirected-request"] {
      let page = try server.client.json("/v1/problems/\(code)")
      #expect(page["type"].text == "/v1/problems/\(code)")
      #expect(page["title"].text?.isEmpty == false)
    }
    #expect(try server.client.send("GET", "/v1/problems/no-such").status == 404)
  }

  @Test(
    "A target in absolute form is forwarded in origin form",
    arguments: [
      ("/v1/objects/A/1?x=http://a/b", "/v1/objects/A/1?x=http://a/b"), ("http://h/ht", "/ht"),
      ("http://example.org:80?x=1", "/?x=1"), ("HTTPS://t", "/"), ("http://tp/http://tp/", "/http://tp/"),
    ])
  func originForm(target: String, form: String) {
    #expect(Target.originForm(of: target) == form)
  }
}
