import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

/// `-0.0` is a number of its own (the specification, section 10): collections of numbers have it beside 0.
@Suite("Zeros of both signs as members") struct ZeroMemberTests {
  private static let schema = """
    entities:
      Bag:
        keys:
          set: { toMany: number }
          list: { toMany: number, ordered: true }
          n: { type: number, enum: [0, 1], indexed: true }
          bags: { toMany: Bag, ordered: true }
    """
  private static let objects = [("Bag/1", "{}"), ("Bag/2", "{}"), ("Bag/3", #"{"n":0}"#), ("Bag/4", #"{"n":-0.0}"#)]

  private func server() throws -> TestServer { try TestServer(schema: Self.schema, objects: Self.objects) }

  private func text(_ server: TestServer, _ target: String) throws -> String {
    try server.client.must("GET", "/v1/objects/\(target)").text
  }

  @Test("A set has both, and each is put in, taken out and told by itself, in a short and in a long one")
  func sets() throws {
    let server = try server()
    for (others, rest) in [("", ""), (",1,2,3,4,5,6,7,8,9,10", ",1,2,3,4,5,6,7,8,9,10")] {
      try server.set("Bag/1/set", "[0\(others)]")
      let stream = try server.client.stream("/v1/objects/Bag/1/set?options=old,new")
      func post(_ operation: String, _ value: String) throws -> String {
        try server.client.must("POST", "/v1/objects/Bag/1/set?operation=\(operation)", body: value).text
      }
      #expect(try post("union", "[-0.0,0]") == "[-0.0,0\(rest)]\n")
      #expect(try stream.next().changes.map { $0["new"].json } == ["[-0.0]"])
      #expect(try post("minus", "[0]") == "[-0.0\(rest)]\n")
      #expect(try stream.next().changes.map { $0["old"].json } == ["[0]"])
      #expect(try post("union", "[0]") == "[-0.0,0\(rest)]\n")
      #expect(try post("intersect", "[-0.0\(others)]") == "[-0.0\(rest)]\n")
      #expect(try server.client.must("DELETE", "/v1/objects/Bag/1/set?value=0").text == "[-0.0\(rest)]\n")
      #expect(try server.client.must("DELETE", "/v1/objects/Bag/1/set?value=-0.0").text == "[\(rest.dropFirst())]\n")
    }
  }

  @Test("An ordered list has both, in the order that they were given")
  func lists() throws {
    let server = try server()
    try server.set("Bag/1/list", "[0,-0.0,1]")
    #expect(try text(server, "Bag/1/list") == "[0,-0.0,1]\n")
    #expect(try server.client.must("DELETE", "/v1/objects/Bag/1/list?value=-0.0").text == "[0,1]\n")
    #expect(try server.client.send("PUT", "/v1/objects/Bag/1/list", body: "[-0.0,-0.0]").problem == "invalid-value")
    try server.client.must(
      "PATCH", "/v1/objects/Bag/1", ["Content-Type": "application/json-patch+json"],
      body: #"[{"op":"replace","path":"/list","value":[-0.0,1]}]"#)
    #expect(try text(server, "Bag/1/list") == "[-0.0,1]\n")
  }

  @Test("Distinct unions have both; filters, sorts, an enum and a test of JSON Patch take them for the same")
  func comparisons() throws {
    let server = try server()
    try server.set("Bag/1/list", "[0]")
    try server.set("Bag/2/list", "[-0.0]")
    try server.set("Bag/1/bags", #"["Bag/1","Bag/2","Bag/3","Bag/4"]"#)
    #expect(try text(server, "Bag/1/bags.@distinctUnionOfArrays.list") == "[0,-0.0]\n")
    #expect(try text(server, "Bag/1/bags.@distinctUnionOfObjects.n") == "[0,-0.0]\n")
    for filter in ["n%20==%200.0", "n%20==%20-0.0"] {
      #expect(try server.client.json("/v1/objects/Bag?filter=\(filter)")["count"].whole == 2, "\(filter)")
    }
    #expect(try server.client.json("/v1/objects/Bag?filter=0.0%20in%20list")["count"].whole == 2)
    #expect(
      try server.client.json("/v1/objects/Bag?sort=-n")["objects"].items.map { $0["@ref"].text }.prefix(2)
        == ["Bag/3", "Bag/4"])
    try server.client.must(
      "PATCH", "/v1/objects/Bag/4", ["Content-Type": "application/json-patch+json"],
      body: #"[{"op":"test","path":"/n","value":0}]"#)
  }
}
