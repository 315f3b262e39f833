import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("The commands get, set, watch and check")
struct CommandLineTests {
  private let server: ServerProcess

  init() throws { server = try ServerProcess() }

  @Test("keyway alone prints the first steps, in ten lines and with commands that exist")
  func firstSteps() throws {
    let outcome = try ChildProcess.keyway()
    #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome.errors)")
    #expect(outcome.output.split(separator: "\n", omittingEmptySubsequences: false).count <= 11)
    for command in ["serve", "watch", "set", "init"] {
      #expect(outcome.output.contains("  keyway \(command) "))
      #expect(try ChildProcess.keyway("help", command).status == 0)
    }
  }

  @Test("get prints JSON; set prints the value as written; both end with 0")
  func getAndSet() throws {
    let address = ["KEYWAY_SERVER": server.url]
    let get = try ChildProcess.keyway("get", "Account/1", "owner.lastName", environment: address)
    #expect(get.status == 0 && get.output == "\"Lovelace\"\n" && get.errors.isEmpty)
    let sum = try ChildProcess.keyway("get", "Department/1", "employees.@sum.salary", environment: address)
    #expect(sum.status == 0 && sum.output == "550\n", "\(sum.output)\(sum.errors)")
    let set = try ChildProcess.keyway("set", "Account/1", "balance", "-5", "--writer", "me", environment: address)
    #expect(set.status == 0 && set.output == "-5\n")
    let text = try ChildProcess.keyway("set", "Person/7", "lastName", "Byron King", environment: address)
    #expect(text.status == 0 && text.output == "\"Byron King\"\n")
    #expect(try ChildProcess.keyway("get", "/v1/status", "--server", server.url).output.contains(#""revision":3"#))
  }

  static let mistakes: [(arguments: [String], errors: String)] = [
    (["get", "Account/1", "balnce"], "404 undefined-key"),
    (["get", "Account/404"], "404 unknown-object"),
    (["get", "Planet"], "404 unknown-entity"),
    (["set", "Account/1", "balance", "much"], "422 invalid-value"),
    (["set", "Account/1", "ownerName", "X"], "422 read-only-key"),
    (["set", "Account/1", "balance", "1", "--if-match", "zzz-1"], "412 stale-revision"),
    (["watch", "Account/404", "balance"], "404 unknown-object"),
    (["import", "/nonexistent.csv", "--entity", "Quote", "--id", "symbol"], "/nonexistent.csv"),
  ]

  @Test("A refusal ends a command with 1 and says what the server says", arguments: mistakes)
  func refusal(_ arguments: [String], _ errors: String) throws {
    let outcome = try ChildProcess.run(
      PackageFolder.keyway, arguments, environment: ["KEYWAY_SERVER": server.url])
    #expect(outcome.status == 1)
    #expect(outcome.output.isEmpty)
    #expect(outcome.errors.contains(errors), "\(outcome.errors)")
  }

  @Test("A server that is not there ends a command with 1 and its address")
  func unreachable() throws {
    let outcome = try ChildProcess.keyway("get", "Account/1", "--server", "http://127.0.0.1:1")
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains("http://127.0.0.1:1"))
  }

  @Test("A command line that is mistaken ends with the status of usage errors and says how it goes")
  func usage() throws {
    for arguments in [
      ["get"], ["frobnicate"], ["set", "Account/1", "balance"], ["serve", "--set", "x"],
      ["watch", "Account/1", "--sort", "balance"],
    ] {
      let outcome = try ChildProcess.run(PackageFolder.keyway, arguments)
      #expect(outcome.status == 64, "\(arguments)")
      #expect(outcome.errors.contains("Usage:"), "\(outcome.errors)")
    }
  }

  @Test("set of an entity without an id says that the id is missing")
  func missingID() throws {
    let outcome = try ChildProcess.run(PackageFolder.keyway, ["set", "Account", "balance", "5"])
    #expect(outcome.status == 64)
    #expect(outcome.errors.contains("an object must be Entity/id, such as Account/1; Account has no id"))
  }

  @Test("check accepts the example, and says of a mistaken schema file, line and what is wrong")
  func check() throws {
    let good = try ChildProcess.keyway("check", "Config/example/schema.yaml")
    #expect(good.status == 0)
    #expect(good.output.hasPrefix("Config/example/schema.yaml: 11 entities, ") && good.output.hasSuffix(" keys\n"))
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-\(UUID().uuidString).yaml")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data("entities:\n  A:\n    keys:\n      b: { type: colour }\n      c: { toOne: Z }\n".utf8).write(to: file)
    let bad = try ChildProcess.keyway("check", file.path)
    #expect(bad.status == 1)
    #expect(bad.errors.contains("\(file.path):4:"), "\(bad.errors)")
    let served = try ChildProcess.keyway("serve", "--port", "0", "--schema", file.path)
    #expect(served.status == 1)
    #expect(served.errors.contains("\(file.path):4:"))
    let rules = """
      entities:
        A: { access: { read: 'size(bs) > 0' }, keys: { bs: { toMany: B, inverse: a } } }
        B: { keys: { a: { toOne: A, inverse: bs } } }
      """
    try Data(rules.utf8).write(to: file)
    let warned = try ChildProcess.keyway("check", file.path)
    #expect(warned.status == 0 && warned.errors.contains("\(file.path):2:25: warning: "), "\(warned.errors)")
  }

  @Test("A refusal of the system is reported in words, with the path and without an error number")
  func files() throws {
    let folder = try ScratchDirectory()
    try Data([0x65, 0xFF]).write(to: URL(fileURLWithPath: folder.file("latin.yaml")))
    try Data("port: 1\nhost: !name x\n".utf8).write(to: URL(fileURLWithPath: folder.file("keyway.yaml")))
    let missing = folder.file("missing.yaml")
    for (arguments, message) in [
      (["check", folder.path], "\(folder.path): is a folder; give the path of a file"),
      (["check", missing], "\(missing): does not exist"),
      (["check", "/proc/self/mem"], "/proc/self/mem: cannot be read: Input/output error"),
      (["check", folder.file("latin.yaml")], "\(folder.file("latin.yaml")): is not UTF-8 text"),
      (["serve", "--config", folder.path], "\(folder.path): is a folder; give the path of a file"),
      (["serve", "--config", missing], "\(missing): does not exist"),
      (
        ["serve", "--config", folder.file("keyway.yaml")], "\(folder.file("keyway.yaml")):2:7: the tag !name is unknown"
      ),
      (["init", "/dev/null/app"], "/dev/null/app: cannot be created: Not a directory"),
    ] {
      let outcome = try ChildProcess.run(PackageFolder.keyway, arguments)
      #expect(outcome.status == 1, "\(arguments)")
      #expect(outcome.errors.contains(message) && outcome.errors.last == "\n", "\(outcome.errors)")
      #expect(!outcome.errors.contains("Domain"), "\(outcome.errors)")
    }
  }

  @Test("watch --json comes back over a cut with its last id: nothing is lost, nothing comes twice")
  func watch() throws {
    let proxy = try FaultyProxy(to: server.port)
    let watch = try ChildProcess.start(
      PackageFolder.keyway, ["watch", "Account/1", "balance", "--json", "--server", proxy.url])
    _ = try watch.lines(1)
    for value in 1...5 { try server.set("Account/1/balance", "\(value)") }
    _ = try watch.lines(6)
    proxy.refuse()
    for value in 6...10 { try server.set("Account/1/balance", "\(value)") }
    #expect(Deadline().awaits { watch.errors.contains("coming back in") })
    try proxy.accept()
    let events = try watch.lines(11).map { try Value(json: $0) }
    #expect(events.map { $0["data"]["changes"][0]["new"].double } == [100] + (1...10).map(Double.init))
    #expect(events.map { $0["data"].has("initial") } == [true] + Array(repeating: false, count: 10))
    watch.send(SIGINT)
    #expect(try watch.exitStatus() == 0)
  }

  @Test("watch prints the kinds and the indexes of what becomes of a to-many")
  func watchCollection() throws {
    let watch = try ChildProcess.start(
      PackageFolder.keyway,
      ["watch", "Department/1", "employees,employees.@count", "--count", "4", "--server", server.url])
    _ = try watch.lines(2)
    let employees = "/v1/objects/Department/1/employees"
    try server.client.must("DELETE", employees + "?index=0")
    try server.client.must("POST", employees + "?index=1", body: #""Employee/1""#)
    try server.client.must(
      "PUT", employees + "?index=0", body: #"{"@ref":"Employee/9","firstName":"a","lastName":"b"}"#)
    let lines = try watch.lines(8).map { $0.replacing(/^[0-9:]{8} [a-z0-9]+-/, with: "") }
    #expect(
      lines.filter { $0.contains(" employees ") } == [
        #"1 Department/1 employees ["Employee/1","Employee/2"]"#, #"2 Department/1 employees -[0] ["Employee/1"]"#,
        #"3 Department/1 employees +[1] ["Employee/1"]"#,
        #"4 Department/1 employees replaced[0] ["Employee/2"] → ["Employee/9"]"#,
      ])
    #expect(try watch.exitStatus() == 0)
  }

  @Test("watch --json of an entity prints the results of the query, and then what becomes of them")
  func watchQuery() throws {
    try makeAirports([
      "AUS": ("Austin", "TX"), "DAL": ("Dallas", "TX"), "HOU": ("Houston", "TX"), "TUL": ("Tulsa", "OK"),
    ])
    let watch = try ChildProcess.start(
      PackageFolder.keyway,
      [
        "watch", "Airport", "--filter", "state == 'TX'", "--sort", "city", "--limit", "2", "--json", "--count", "4",
        "--server", server.url,
      ])
    let results = try #require(try watch.lines(1).map { try Value(json: $0) }.first)
    #expect(results["event"].text == "results" && results["data"]["count"].whole == 2)
    #expect(results["data"]["objects"].items.map { $0["@ref"].text } == ["Airport/AUS", "Airport/DAL"])
    try makeAirports(["ABI": ("Abilene", "TX")])
    try server.set("Airport/TUL/city", #""Aaa""#)
    try server.set("Airport/ABI/state", #""OK""#)
    try server.client.must("DELETE", "/v1/objects/Airport/AUS")
    let contents = try watch.lines(4).dropFirst().map { try Value(json: $0) }
    #expect(contents.map { $0["event"].text } == ["content", "content", "content"])
    let changes = contents.map { content in
      content["data"]["changes"].items.map { change in
        let places = [change["index"], change["newIndex"]].map(\.json).joined(separator: " ")
        return "\(change["type"].text ?? "") \(change["object"].text ?? "") \(places) \(change["reason"].text ?? "")"
      }.sorted()
    }
    #expect(
      changes == [
        ["delete Airport/DAL 1 null left", "insert Airport/ABI null 0 created"],
        ["delete Airport/ABI 0 null left", "insert Airport/DAL null 1 entered"],
        ["delete Airport/AUS 0 null deleted", "insert Airport/HOU null 1 entered"],
      ])
    #expect(try watch.exitStatus() == 0)
  }

  @Test("watch of an entity with sections prints a line for each section and each change")
  func watchSections() throws {
    try makeAirports(["AUS": ("Austin", "TX"), "DAL": ("Dallas", "TX"), "TUL": ("Tulsa", "OK")])
    let watch = try ChildProcess.start(
      PackageFolder.keyway,
      [
        "watch", "Airport", "--sort", "city", "--section", "state", "--keys", "city,state", "--count", "2",
        "--server", server.url,
      ])
    _ = try watch.lines(3)
    try server.set("Airport/TUL/state", #""TX""#)
    let lines = try watch.lines(5).map { $0.replacing(#/^[0-9:]{8} [a-z0-9]+-[0-9]+ /#, with: "") }
    #expect(
      lines == [
        "3 objects in 2 sections", "OK (1): Airport/TUL", "TX (2): Airport/AUS Airport/DAL", "delete section OK 0",
        #"move Airport/TUL [0,0] → [0,2] state "TX""#,
      ])
    #expect(try watch.exitStatus() == 0)
  }

  private func makeAirports(_ airports: KeyValuePairs<String, (city: String, state: String)>) throws {
    for (iata, airport) in airports {
      let body = #"{"iata":"\#(iata)","name":"Field","city":"\#(airport.city)","state":"\#(airport.state)"}"#
      try server.client.must("PUT", "/v1/objects/Airport/\(iata)", body: body)
    }
  }

  @Test("watch prints a line for each change, and ends with 0 after gone or after so many events")
  func watchLines() throws {
    let watch = try ChildProcess.start(PackageFolder.keyway, ["watch", "Note/1", "text", "--server", server.url])
    let counted = try ChildProcess.start(
      PackageFolder.keyway, ["watch", "Note/1", "text", "--count", "2", "--server", server.url])
    _ = try watch.lines(1)
    _ = try counted.lines(1)
    try server.set("Note/1/text", #""second""#)
    try server.client.must("DELETE", "/v1/objects/Note/1")
    let lines = try watch.lines(3).map { $0.replacing(/^[0-9:]{8} [a-z0-9]+-/, with: "") }
    #expect(
      lines == [
        #"1 Note/1 text "The first note""#, #"2 Note/1 text "The first note" → "second""#, "3 Note/1 gone",
      ])
    #expect(try watch.exitStatus() == 0)
    #expect(try counted.exitStatus() == 0)
  }
}
