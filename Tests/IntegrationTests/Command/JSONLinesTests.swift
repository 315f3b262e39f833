import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Importing and exporting JSON lines")
struct JSONLinesTests {
  private typealias Outcome = (status: Int32, output: String, errors: String)

  private static let schema = """
    entities:
      Node:
        keys:
          text: { type: string, default: none }
          size: { type: number }
          whole: { type: integer }
          day: { type: date }
          extra: { type: json }
          next: { toOne: Node }
          twin: { toOne: Node, inverse: twin }
          label: { type: string, computed: next.text }
      Leaf:
        extends: Node
        keys:
          stem: { toOne: Node, optional: false }
      Team:
        keys:
          players: { toMany: Player, ordered: true, inverse: team }
          fans: { toMany: Player, inverse: favourites }
          guests: { toMany: Player, ordered: true }
          marks: { toMany: integer, ordered: true }
          words: { toMany: string }
          size: { type: integer, computed: players.@count }
      Player:
        keys:
          team: { toOne: Team, inverse: players }
          favourites: { toMany: Team, ordered: true, inverse: fans }
    """

  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("keyway-lines-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(Self.schema.utf8).write(to: folder.appendingPathComponent("schema.yaml"))
  }

  private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

  private func read(_ name: String) throws -> String { try String(contentsOfFile: path(name), encoding: .utf8) }

  private func server(_ settings: [String: String] = [:]) throws -> ServerProcess {
    try ServerProcess(
      "--schema", path("schema.yaml"), settings: settings.merging(["seed": "none"]) { given, _ in given })
  }

  private func write(_ lines: [String], to name: String = "objects.jsonl") throws -> String {
    try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: folder.appendingPathComponent(name))
    return path(name)
  }

  private func run(_ server: ServerProcess, _ arguments: String...) throws -> Outcome {
    try ChildProcess.run(PackageFolder.keyway, arguments + ["--server", server.url])
  }

  @Test(
    "Collections come back with their members in the same places, whatever the order of the lines and the batches",
    arguments: ["1", "2", "3", "1024"])
  func collections(_ batch: String) throws {
    let file = try write([
      #"{"@ref":"Team/b","players":["Player/3","Player/1"],"#
        + #""guests":["Player/2","Player/4","Player/1"],"marks":[3,1,2]}"#,
      #"{"@ref":"Player/4","team":"Team/a","favourites":["Team/b","Team/a"]}"#,
      #"{"@ref":"Player/1"}"#, #"{"@ref":"Player/2","team":"Team/a","favourites":["Team/a"]}"#,
      #"{"@ref":"Team/a","players":["Player/4","Player/2"],"words":["b","a","Player/1"]}"#, #"{"@ref":"Player/3"}"#,
    ])
    let first = try server()
    let imported = try run(first, "import", file, "--batch", batch)
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(
      try first.client.json("/v1/objects/Team/b")["players"].json == #"["Player/3","Player/1"]"#)
    #expect(try first.client.json("/v1/objects/Team/a").json.contains(#""words":["Player/1","a","b"],"size":2"#))
    #expect(try first.client.json("/v1/objects/Team/a/fans").json == #"["Player/2","Player/4"]"#)
    _ = try run(first, "export", "--output", path("one.jsonl"))
    let second = try server()
    let again = try run(second, "import", path("one.jsonl"), "--batch", batch)
    #expect(again.status == 0, "\(again.errors)")
    _ = try run(second, "export", "--output", path("two.jsonl"))
    #expect(try read("two.jsonl") == read("one.jsonl"))
    // A file that only its owner can read stays so when it is written anew.
    #expect(chmod(path("two.jsonl"), 0o600) == 0)
    _ = try run(second, "export", "--output", path("two.jsonl"))
    var status = stat()
    #expect(stat(path("two.jsonl"), &status) == 0 && status.st_mode & 0o777 == 0o600)
  }

  @Test(
    "Import, export, import into a second server, export: both exports are the same bytes", arguments: ["2", "1024"])
  func roundTrip(_ batch: String) throws {
    let deep = String(repeating: "[", count: 64) + String(repeating: "]", count: 64)
    let file = try write([
      #"{"@ref":"Leaf/z","stem":"Node/b","twin":"Node/a","next":"Leaf/z"}"#,
      #"{"@ref":"Leaf/y","@revision":7,"stem":"Leaf/z","size":-0.0,"whole":-9223372036854775808}"#, "",
      #"{"@ref":"Node/a","text":null,"next":"Node/b","size":5e-324,"day":"2010-03-01T09:30:00.10+02:00"}"#,
      #"{"@ref":"Node/b","text":"\u0000\u00e9e\u0301\"","next":"Node/a","extra":{"b":[1,1.5,1e300,null],"a":{}}}"#,
      #"{"@ref":"Node/c","next":"Node/a","twin":"Node/d","size":1.7976931348623157e308,"extra":\#(deep)}"#,
      #"{"@ref":"Node/d","twin":"Node/c","whole":9007199254740993,"extra":null}"#,
    ])
    let first = try server()
    let imported = try run(first, "import", file, "--batch", batch)
    #expect(imported.status == 0, "\(imported.errors)")
    #expect(imported.output.hasPrefix("imported 6 rows in "))
    let exported = try run(first, "export", "--output", path("one.jsonl"))
    #expect(exported.status == 0, "\(exported.errors)")
    #expect(exported.output.hasPrefix("exported 6 objects at revision "))
    let second = try server(["fetch.limit": "2"])
    let again = try run(second, "import", path("one.jsonl"), "--batch", batch)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try run(second, "export", "--output", path("two.jsonl")).status == 0)
    #expect(try read("one.jsonl") == read("two.jsonl"))
    for object in try first.client.json("/v1/objects")["objects"].items {
      let twin = try second.client.json("/v1/objects/\(object["@ref"].text ?? "")")
      for name in object.names where name != "@revision" { #expect(object[name] == twin[name], "\(name)") }
    }
    let lines = try read("one.jsonl").split(separator: "\n").map(String.init)
    #expect(lines.count == 6)
    #expect(
      lines.first == #"{"@ref":"Node/a","text":null,"size":5e-324,"whole":null,"day":"2010-03-01T09:30:00.10+02:00","#
        + #""extra":null,"next":"Node/b","twin":"Leaf/z"}"#)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names.sorted() == ["objects.jsonl", "one.jsonl", "schema.yaml", "two.jsonl"])
  }

  @Test("An import reads standard input and an export writes standard output, so one server is piped into another")
  func piping() throws {
    let first = try server()
    let second = try server()
    for id in 0..<5 { try first.client.must("PUT", "/v1/objects/Node/\(id)", body: #"{"next":"Node/0"}"#) }
    let script =
      "'\(PackageFolder.keyway)' export Node --server \(first.url)"
      + " | '\(PackageFolder.keyway)' import - --format jsonl --server \(second.url)"
    let piped = try ChildProcess.run("/bin/bash", ["-o", "pipefail", "-c", script])
    #expect(piped.status == 0, "\(piped.errors)")
    #expect(piped.output.hasPrefix("imported 5 rows in "))
    #expect(try run(first, "export").output == run(second, "export").output)
  }

  static let mistakes: [(lines: [String], errors: String)] = [
    ([#"{"@ref":"Node/1"}"#, #"{"@ref":"Node/2","text":}"#], "objects.jsonl:2: is not JSON: "),
    ([#"{"@ref":"Node/1"}"#, #"{"text":"x"}"#], "objects.jsonl:2: the line has no @ref"),
    ([#"{"@ref":"Planet/1"}"#], "objects.jsonl:1: the schema has no entity Planet; it has Node, Leaf"),
    ([#"{"@ref":"Node/1","colour":1}"#], "objects.jsonl:1: Node has no key colour"),
    ([#"{"@ref":"Node/1","label":"x"}"#], "objects.jsonl:1: label is computed and cannot be imported"),
    ([#"{"@ref":"Node/1","next":5}"#], "objects.jsonl:1: next must be a reference"),
    (["", #"{"@ref":"Node/1"}"#, #"{"@ref":"Node/2","whole":1.5}"#], "objects.jsonl:3: 422 invalid-value: "),
    ([#"{"@ref":"Node/1"}"#, #"{"@ref":"Node/1"}"#], "objects.jsonl:2: 409 already-exists: "),
    ([#"{"@ref":"Node/1","next":"Node/9"}"#], "objects.jsonl:1: next names Node/9, which is neither in the file nor"),
    ([#"{"@ref":"Leaf/1"}"#], "objects.jsonl:1: 422 null-not-allowed: "),
    (
      [#"{"@ref":"Leaf/1","stem":"Leaf/2"}"#, #"{"@ref":"Leaf/2","stem":"Leaf/1"}"#],
      "objects.jsonl:2: none of these can be made first: "
    ),
  ]

  @Test("A mistake is told with its file and line", arguments: mistakes)
  func mistake(_ lines: [String], _ errors: String) throws {
    let server = try server()
    let outcome = try run(server, "import", try write(lines))
    #expect(outcome.status == 1)
    #expect(outcome.errors.contains(errors), "\(outcome.errors)")
    #expect(outcome.errors.contains("stopped"))
  }

  @Test("An import that stops says which batch was not applied, and how many rows and references there are")
  func stopped() throws {
    let server = try server()
    let file = try write([
      #"{"@ref":"Node/1","next":"Node/9"}"#, #"{"@ref":"Node/2"}"#, #"{"@ref":"Node/3"}"#,
      #"{"@ref":"Node/4","size":["big"]}"#, #"{"@ref":"Node/5"}"#,
    ])
    let outcome = try run(server, "import", file, "--batch", "2")
    #expect(outcome.errors.contains("\(file):4: 422 invalid-value: "), "\(outcome.errors)")
    #expect(
      outcome.errors.contains(
        "stopped in batch 2, which was not applied; 2 rows had been imported; references that were held back "
          + "and are not set: 1"), "\(outcome.errors)")
    #expect(try server.status["objects"].whole == 2)
    #expect(try server.revision == 1)
    let held = try run(server, "import", file, "--held-references", "0", "--on-conflict", "replace")
    #expect(held.errors.contains("raise the limit with --held-references"), "\(held.errors)")
  }

  @Test("An existing object stops the import, is replaced, or is left unchanged")
  func conflicts() throws {
    let server = try server()
    let old = #"{"text":"old","size":1,"extra":{"a":1},"next":"Node/0"}"#
    try server.client.must("PUT", "/v1/objects/Node/0", body: "{}")
    try server.client.must("PUT", "/v1/objects/Node/1", body: old)
    let file = try write([#"{"@ref":"Node/1","extra":{"b":2},"twin":"Node/2"}"#, #"{"@ref":"Node/2"}"#])
    let failed = try run(server, "import", file)
    #expect(failed.status == 1)
    #expect(failed.errors.contains("\(file):1: 409 already-exists"), "\(failed.errors)")
    let skipped = try run(server, "import", file, "--on-conflict", "skip")
    #expect(skipped.output.hasPrefix("imported 1 row in "), "\(skipped.errors)")
    #expect(skipped.output.hasSuffix("skipped 1\n"))
    #expect(try server.client.json("/v1/objects/Node/1")["text"].text == "old")
    let replaced = try run(server, "import", file, "--on-conflict", "replace")
    #expect(replaced.output.hasPrefix("imported 2 rows in "), "\(replaced.errors)")
    let object = try server.client.json("/v1/objects/Node/1")
    #expect(object["text"].text == "none")
    #expect(object["extra"].json == #"{"b":2}"#)
    #expect(object["size"].isNull && object["next"].isNull)
    #expect(object["twin"].text == "Node/2")
  }

  @Test("Lines without @ref get their references from --entity and --id")
  func withoutReferences() throws {
    let server = try server()
    let file = try write([#"{"number":7,"text":"a b"}"#], to: "rows.ndjson")
    let outcome = try run(server, "import", file, "--entity", "Node", "--id", "number", "--id", "text")
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(try server.client.json("/v1/objects/Node/7-a-b")["text"].text == "a b")
  }

  @Test("An export that is interrupted ends with 1 and leaves no file, nor a part of one")
  func interrupted() throws {
    let server = try server(["fetch.limit": "1"])
    for id in 0..<2000 { try server.client.must("PUT", "/v1/objects/Node/\(id)", body: "{}") }
    let export = try ChildProcess.start(
      PackageFolder.keyway, ["export", "--output", path("all.jsonl"), "--server", server.url])
    let hasBegun = try Deadline().awaits {
      try FileManager.default.contentsOfDirectory(atPath: folder.path).contains { $0.hasSuffix(".part") }
    }
    #expect(hasBegun)
    export.send(SIGINT)
    #expect(try export.exitStatus() == 1)
    #expect(export.errors.contains("interrupted; "), "\(export.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["schema.yaml"])
  }

  @Test("An export that is refused leaves the file as it was, and nothing beside it")
  func untouched() throws {
    let server = try server()
    let file = try write(["before"])
    let refused = try run(server, "export", "Planet", "--output", file)
    #expect(refused.status == 1)
    #expect(refused.errors.contains("404 unknown-entity"), "\(refused.errors)")
    #expect(try read("objects.jsonl") == "before\n")
    let device = try run(server, "export", "--output", "/dev/null")
    #expect(device.errors.contains("/dev/null: is not a regular file"), "\(device.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).count == 2)
  }

  @Test("A page that expires on the way: a file is begun anew and given up in the end, standard output fails")
  func expired() throws {
    let server = try server(["fetch.limit": "1", "fetch.pages": "1"])
    for id in 0..<2000 { try server.client.must("PUT", "/v1/objects/Node/\(id)", body: "{}") }
    let rival = try ChildProcess.start(
      "/bin/bash", ["-c", "while curl -s '\(server.url)/v1/objects/Node?limit=1' > /dev/null; do :; done"])
    let toFile = try run(server, "export", "--output", path("expired.jsonl"))
    #expect(toFile.status == 1)
    #expect(toFile.errors.components(separatedBy: "starting over").count == 3, "\(toFile.errors)")
    #expect(toFile.errors.contains("410 page-expired") && toFile.errors.contains("nothing was written"))
    let toOutput = try run(server, "export")
    #expect(toOutput.status == 1)
    #expect(toOutput.errors.contains("the output is incomplete"), "\(toOutput.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["schema.yaml"])
    _ = rival.isRunning
  }

  @Test("Options of the other format are usage errors")
  func usage() throws {
    for arguments in [
      ["import", "a.csv"], ["import", "a.jsonl", "--delimiter", ";"], ["import", "a.jsonl", "--entity", "Node"],
      ["import", "a.csv", "--entity", "Node", "--id", "x", "--batch", "2"], ["import", "a.jsonl", "--batch", "0"],
    ] {
      #expect(try ChildProcess.run(PackageFolder.keyway, arguments).status == 64, "\(arguments)")
    }
  }
}
