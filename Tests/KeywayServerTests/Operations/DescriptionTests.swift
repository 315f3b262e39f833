import Cluster
import KeyValueModel
import TestKit
import Testing

@testable import KeywayServer

@Suite("The description of the API")
struct DescriptionTests {
  /// Returns true if a target matches a path pattern.
  private func matches(_ target: String, _ pattern: String) -> Bool {
    let (target, pattern) = (Self.segments(target), Self.segments(pattern))
    return target.count == pattern.count && zip(target, pattern).allSatisfy { $1.hasPrefix("{") || $0 == $1 }
  }

  private static func segments(_ path: String) -> [Substring] {
    path.split(separator: "/", omittingEmptySubsequences: false)
  }

  /// Returns the pattern for a target: the most specific one, as OpenAPI requires.
  private func bestPattern(of target: String, among patterns: [String]) -> String? {
    patterns.filter { matches(target, $0) }.min { $0.count(where: { $0 == "{" }) < $1.count(where: { $0 == "{" }) }
  }

  @Test("It has every route with its methods, and none other")
  func routes() throws {
    let document = try TestServer { $0.cluster.followers = true }.client.json("/v1/openapi.json")
    #expect(document["openapi"].text == "3.1.0")
    let patterns = document["paths"].names
    var found: Set<String> = []
    for (target, allow) in RouteTableTests.table {
      let pattern = try #require(bestPattern(of: target, among: patterns), "\(target)")
      found.insert(pattern)
      let methods = document["paths"][pattern].names.filter { $0 != "parameters" }
      #expect(methods.map { $0.uppercased() }.joined(separator: ", ") == allow, "\(target)")
      for method in methods { #expect(document["paths"][pattern][method]["responses"].names.isEmpty == false) }
    }
    #expect(Set(patterns).subtracting(found) == [])
  }

  @Test("The file has every path that a server can have with its parameters, and none other")
  func paths() throws {
    let scratch = try ScratchDirectory()
    let server = try TestServer {
      $0.cluster.followers = true
      $0.files.folder = scratch.path
    }
    let served = try server.client.json("/v1/openapi.json")["paths"]
    let described = Value.object(OpenAPIDocument.file)["paths"]
    #expect(Set(described.names) == Set(served.names))
    for pattern in described.names {
      let parameters = described[pattern]["parameters"].items.map { $0["name"].text ?? "" }
      #expect(parameters == pattern.matches(of: /\{(.*?)\}/).map { String($0.1) }, "\(pattern)")
    }
  }

  @Test("The operations of a transaction have the members that are read")
  func operations() {
    let transaction = Value.object(OpenAPIDocument.file)["components"]["schemas"]["transaction"]
    let forms = transaction["properties"]["operations"]["items"]["anyOf"].items
    let kinds = OperationKind.allCases.filter(\.isSent)
    let names = forms.map { $0["properties"]["op"]["enum"][0].text ?? "" }
    #expect(names == kinds.map(\.name))
    for (form, kind) in zip(forms, kinds) {
      var members = ["op", "object"] + (kind == .create ? ["entity"] : []) + kind.operands.map(\.name)
      if OperationReader.leasing.contains(kind) { members.append("lifetime") }
      #expect(form["properties"].names == members, "\(kind)")
    }
  }

  @Test("Operations have names of their own, and what they refer to is there")
  func names() throws {
    let document = try TestServer().client.json("/v1/openapi.json")
    var names: [String] = []
    for path in document["paths"].names.map({ document["paths"][$0] }) {
      names += path.names.filter { $0 != "parameters" }.map { path[$0]["operationId"].text ?? "" }
    }
    #expect(Set(names).count == names.count)
    #expect(!names.contains(""))
    let references = document.json.matches(of: /"\$ref":"#\/components\/([^\/"]+)\/([^"]+)"/)
    #expect(references.count > 100)
    for reference in references {
      let component = document["components"][String(reference.1)][String(reference.2)]
      #expect(!component.isNull, "\(reference.2)")
    }
  }

  @Test("An entity is described as /v1/entities has it")
  func entities() throws {
    let server = try TestServer()
    let schemas = try server.client.json("/v1/openapi.json")["components"]["schemas"]
    let entities = try server.client.json("/v1/entities")["$defs"]
    #expect(entities.names.count == 6)
    for name in entities.names {
      guard case .object(var expected) = entities[name] else { throw LoopbackError("\(name) is no object") }
      (expected["$schema"], expected["$id"]) = (nil, nil)
      #expect(schemas["entity.\(name)"] == .object(expected))
    }
  }

  @Test("With keys it says how a token is sent, and what is there only with one")
  func security() throws {
    let open = try TestServer().client.json("/v1/openapi.json")
    #expect(open["security"].isNull)
    #expect(open["components"]["securitySchemes"].isNull)
    let guarded = try GuardedServer()
    let document = try Value(json: guarded.client.send("GET", "/v1/openapi.json", guarded.reader).body)
    let schemes = document["components"]["securitySchemes"]
    #expect(schemes["bearer"]["scheme"].text == "bearer")
    #expect(schemes["session"]["name"].text == "keyway_session")
    #expect(document["security"].items.count == 3)
    #expect(document["paths"]["/v1/status"]["get"]["security"].items.count == 2)
    #expect(document["paths"]["/v1/objects/{Entity}"]["get"]["security"].isNull)
    #expect(!document["paths"]["/v1/objects/{Entity}"]["get"]["responses"]["401"].isNull)
    #expect(open["paths"]["/v1/objects/{Entity}"]["get"]["responses"]["401"].isNull)
  }

  @Test("An application's own files are in it where they are served")
  func files() throws {
    let scratch = try ScratchDirectory()
    let server = try TestServer { $0.files.folder = scratch.path }
    #expect(!(try server.client.json("/v1/openapi.json")["paths"]["/{file}"].isNull))
  }
}
