import KeyValueModel
import Store
import TestKit
import Testing

@testable import KeywayServer

/// Aggregates that take many steps: 20 teams with the same 200 members.
@Suite("Streams whose values take many steps", .timeLimit(.minutes(60)))
struct ObservationStepsTests {
  private static let schema = """
    entities:
      Team: {keys: {name: {type: string}, members: {toMany: Member}}}
      Member: {keys: {name: {type: string}}}
    """

  private func server(_ configure: (inout KeywayServer.Configuration) -> Void) throws -> TestServer {
    let server = try TestServer(schema: Self.schema, objects: [], configure)
    let members = (0..<200).map { #"{"op":"create","object":"Member/\#($0)","value":{"name":"n\#($0)"}}"# }
    let references = (0..<200).map { "\"Member/\($0)\"" }.joined(separator: ",")
    let teams = (0..<20).map {
      #"{"op":"create","object":"Team/\#($0)","value":{"name":"t","members":[\#(references)]}}"#
    }
    try server.client.must(
      "POST", "/v1/transactions", body: "{\"operations\":[\((members + teams).joined(separator: ","))]}")
    return server
  }

  private static let path = "members.@distinctUnionOfObjects.name"

  private func cells(_ count: Int, teams: Int, _ options: String = #""initial","new""#) -> String {
    let cells = (0..<count).map {
      #""c\#($0)":{"object":"Team/\#($0 % teams)","keyPaths":["\#(Self.path)"],"options":[\#(options)]}"#
    }
    return #"{"cells":{\#(cells.joined(separator: ","))}}"#
  }

  @Test("The first state of a stream is computed within request.steps, each object and key path once")
  func opening() throws {
    let server = try server { $0.requestSteps = 2_000 }
    let refused = try server.client.send("POST", "/v1/streams", body: cells(20, teams: 20))
    #expect(refused.status == 429 && refused.problem == "too-many-steps", "\(refused.text.prefix(300))")
    #expect(try server.client.json("/v1/streams")["streams"].items.isEmpty)
    // As many cells of one team take no more than one.
    let stream = try server.client.stream("/v1/streams", method: "POST", body: cells(200, teams: 1))
    let name = try stream.next().json["stream"].text ?? ""
    #expect(try stream.next().changes.count == 200)
    // Nor can an open stream bind more; its present cells continue.
    let bound = try server.client.send("PUT", "/v1/streams/\(name)/cells", body: cells(20, teams: 20))
    #expect(bound.status == 429 && bound.problem == "too-many-steps")
    #expect(try server.client.json("/v1/streams/\(name)/cells")["cells"].names.count == 200)
    try server.set("Member/1/name", "\"x\"")
    #expect(try stream.next().changes.count == 200)
  }

  @Test("A stream of one object is refused likewise")
  func object() throws {
    let server = try server { $0.requestSteps = 1_000 }
    let paths = "members.@distinctUnionOfObjects.name,members.@unionOfObjects.name,members.@max.name,members.@min.name"
    let refused = try server.client.send("GET", "/v1/objects/Team/1/\(paths)", ["Accept": "text/event-stream"])
    #expect(refused.status == 429 && refused.problem == "too-many-steps", "\(refused.text.prefix(300))")
    #expect(try server.client.stream("/v1/objects/Team/1/\(Self.path)").next().changes.count == 1)
  }

  @Test("An observer that exceeds a commit's steps is notified later, merged; others at once; a replay has everything")
  func missed() throws {
    let server = try server { $0.store.observationCommitSteps = 8_000 }
    let greedy = try server.client.stream("/v1/streams", method: "POST", body: cells(20, teams: 20))
    let name = try greedy.next().json["stream"].text ?? ""
    #expect(try greedy.next().changes.count == 20)
    let modest = try server.client(from: "127.0.0.2").stream(
      "/v1/streams", method: "POST", body: cells(1, teams: 1, #""old","new","initial""#))
    for _ in 0..<2 { _ = try modest.next() }
    let before = try server.revision
    try server.set("Member/7/name", "\"seven\"")
    let told = try modest.next()
    #expect(told.json["revision"].whole == before + 1 && told.changes.map { $0["coalesced"].whole } == [nil])
    #expect(told.changes[0]["old"].items.contains(.string("n7")))
    let merged = try greedy.next()
    #expect(merged.json["revision"].whole == before + 1 && merged.changes.count == 20)
    #expect(Set(merged.changes.map { $0["coalesced"].whole }) == [1])
    #expect(Set(merged.changes.map { $0["new"] }) == [told.changes[0]["new"]])
    // A client that resumes from an earlier revision gets events as if it had missed nothing.
    let back = try server.client.stream("/v1/streams/\(name)", ["Last-Event-ID": "\(server.epoch)-\(before)"])
    #expect(try back.next().name == "open")
    let replayed = try back.next()
    #expect(replayed.json["revision"].whole == before + 1 && replayed.changes.count == 20)
    #expect(Set(replayed.changes.map { $0["coalesced"].whole }) == [nil])
    #expect(Set(replayed.changes.map { $0["new"] }) == [told.changes[0]["new"]])
  }

  @Test("A stream that needs more steps than writers wait for catches up while others write, and goes on")
  func large() throws {
    // 20 teams of 200 members are 4,000 members; five key paths of each are more than 20,000 steps.
    let server = try server { $0.store.observationCommitSteps = 1_500 }
    let paths = ["@distinctUnionOfObjects", "@unionOfObjects", "@max", "@min"].map { "\"members.\($0).name\"" }
    let bodies = (0..<20).map {
      #""c\#($0)":{"object":"Team/\#($0)","keyPaths":[\#(paths.joined(separator: ","))],"options":["new"]}"#
    }
    let stream = try server.client.stream(
      "/v1/streams", method: "POST", body: #"{"cells":{\#(bodies.joined(separator: ","))}}"#)
    _ = try stream.next()
    for round in 0..<3 {
      try server.set("Member/9/name", "\"round \(round)\"")
      let revision = try server.revision
      var names: Set<Value> = []
      // The last event has the present value, for all cells.
      while true {
        let event = try stream.next()
        guard event.name == "change" else { continue }
        for change in event.changes where change["keyPath"].text == Self.path {
          if change["new"].items.contains(.string("round \(round)")) { names.insert(change["cell"]) }
        }
        if event.json["revision"].whole == revision, names.count == 20 { break }
      }
    }
  }
}
