import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("The commands status, create, patch, delete and get on a terminal")
struct ClientCommandTests {
  private let server: ServerProcess

  init() throws { server = try ServerProcess() }

  private typealias Outcome = (status: Int32, output: String, errors: String)

  /// Runs `keyway` with the server's settings for host and port in the environment.
  private func run(_ arguments: String...) throws -> Outcome {
    try ChildProcess.run(
      PackageFolder.keyway, arguments, environment: ["KEYWAY_HOST": "0.0.0.0", "KEYWAY_PORT": "\(server.port)"])
  }

  /// Runs `keyway` with a terminal of 100 columns as standard output, by script(1), which ends lines with CR LF.
  private func onTerminal(_ command: String, _ environment: [String: String] = [:]) throws -> String {
    let shell = try ChildProcess.run(
      "/usr/bin/script", ["-qec", "stty cols 100 rows 30; \(PackageFolder.keyway) \(command)", "/dev/null"],
      environment: ["KEYWAY_PORT": "\(server.port)", "TERM": "xterm", "NO_COLOR": ""].merging(environment) { $1 })
    #expect(shell.status == 0, "\(shell.output)\(shell.errors)")
    return shell.output.replacing("\r\n", with: "\n")
  }

  @Test("--version tells the version that the server tells")
  func version() throws {
    let version = try #require(try server.status["version"].text)
    #expect(try run("--version").output == "keyway \(version)\n")
  }

  @Test("status prints what /v1/status says, for people and with --json as it is")
  func status() throws {
    let epoch = try #require(try server.status["epoch"].text)
    let text = try run("status").output.split(separator: "\n").map(String.init)
    #expect(text.first?.hasSuffix("at \(server.url): serving") == true, "\(text)")
    #expect(text.contains { $0.split(separator: " ") == ["epoch", Substring(epoch)] })
    #expect(text.contains { $0.split(separator: " ") == ["revision", "1"] })
    let json = try Value(json: try run("status", "--json").output)
    #expect(json["epoch"].text == epoch && json["memory"].has("bytes"))
    let coloured = try onTerminal("status").split(separator: "\n")[0]
    #expect(coloured.hasSuffix("\u{1B}[1;32mserving\u{1B}[0m"), "\(coloured)")
    let plain = try onTerminal("status", ["NO_COLOR": "1"]).split(separator: "\n")[0]
    #expect(plain.hasSuffix("\u{1B}[1mserving\u{1B}[0m"), "\(plain)")
    #expect(!text.joined().contains("\u{1B}"))
  }

  @Test("create makes an object with the server's id or its own, and leaves one alone that is there")
  func create() throws {
    let made = try run("create", "Person", #"{"firstName":"A","lastName":"B"}"#)
    #expect(made.status == 0, "\(made.errors)")
    let reference = try #require(try Value(json: made.output)["@ref"].text)
    #expect(reference.contains(/^Person\/[0-9a-f-]{36}$/))
    let named = try run("create", "Person/9", "firstName=A", "lastName=7", "--writer", "me")
    #expect(named.status == 1 && named.errors.contains("422 invalid-value"), "\(named.errors)")
    #expect(named.errors.hasSuffix("write the text as lastName='\"7\"'\n"), "\(named.errors)")
    for command in [["patch", "Person/7", "lastName=true"], ["set", "Person/7", "lastName", "1.5"]] {
      let refused = try ChildProcess.run(
        PackageFolder.keyway, command, environment: ["KEYWAY_PORT": "\(server.port)"])
      #expect(refused.status == 1 && refused.errors.contains("hint: \(command.last ?? "")"), "\(refused.errors)")
    }
    #expect(try run("create", "Person/9", "firstName=A", "lastName=\"7\"").status == 0)
    #expect(try server.client.json("/v1/objects/Person/9")["fullName"].text == "A 7")
    let again = try run("create", "Person/9", "firstName=X", "lastName=Y")
    #expect(again.status == 1 && again.errors.contains("Person/9 already exists"))
    #expect(try server.client.json("/v1/objects/Person/9")["firstName"].text == "A")
    let note = try run("create", "Note/9", "text=soon gone", "--lifetime", "600")
    #expect(try Value(json: note.output)["@lifetime"].whole == 600)
    let unknown = try run("create", "Planet", "name=x")
    #expect(unknown.status == 1 && unknown.errors.contains("404 unknown-entity"))
    #expect(try run("create", "Note/a b").status == 64)
  }

  @Test("patch merges, or applies a JSON Patch, and delete deletes; both only under the ETag that is asked for")
  func patchAndDelete() throws {
    let merged = try run("patch", "Person/7", "lastName=Byron", "email=null")
    #expect(try Value(json: merged.output)["lastName"].text == "Byron", "\(merged.errors)")
    let patched = try run("patch", "Person/7", #"[{"op":"replace","path":"/lastName","value":"King"}]"#)
    #expect(try Value(json: patched.output)["fullName"].text == "Ada King", "\(patched.errors)")
    let epoch = try #require(try server.status["epoch"].text)
    let stale = try run("patch", "Person/7", "lastName=X", "--if-match", "\(epoch)-1")
    #expect(stale.status == 1 && stale.errors.contains("412 stale-revision"))
    let broken = try run("delete", "Quote/MSFT", "--if-match", "\(epoch)-0\n\"")
    #expect(broken.status == 1 && broken.errors.contains("If-Match has a line end"), "\(broken.errors)")
    let kept = try run("delete", "Quote/MSFT", "--if-match", "\(epoch)-0")
    #expect(kept.status == 1 && kept.errors.contains("412 stale-revision"))
    let deleted = try run("delete", "Quote/MSFT", "--if-match", "\(epoch)-1")
    #expect(deleted.status == 0 && deleted.output.isEmpty && deleted.errors.isEmpty, "\(deleted.errors)")
    #expect(try server.client.send("GET", "/v1/objects/Quote/MSFT").status == 404)
    let missing = try run("delete", "Quote")
    #expect(missing.status == 64 && missing.errors.contains("Quote has no id"))
  }

  @Test("get of an entity goes over all pages: the JSON is that of one page, a terminal has columns")
  func pages() throws {
    let body = (0..<250).map { index in
      #"{"op":"create","object":"Note/p\#(index)","value":{"text":"n\#(index)"}}"#
    }
    try server.client.must("POST", "/v1/transactions", body: "{\"operations\":[\(body.joined(separator: ","))]}")
    let all = try run("get", "Note?filter=text.startsWith('n')", "--sort", "-text")
    let whole = try server.client.must("GET", "/v1/objects/Note?filter=text.startsWith('n')&sort=-text&limit=1000")
    #expect(all.output == whole.text)
    #expect(try Value(json: all.output)["objects"].items.count == 250)
    let some = try Value(json: try run("get", "Note?limit=3").output)
    #expect(some["objects"].items.count == 3 && some.has("next"))

    let table = try onTerminal("get Note --sort text --filter \"text.startsWith('n')\"").split(separator: "\n")
    #expect(table.count == 251)
    #expect(table[0].contains("@ref") && table[0].contains("text"))
    #expect(table[1].hasPrefix("Note/p0") && table[1].contains("n0"))
    let short = try onTerminal("get Note --limit 2").split(separator: "\n")
    #expect(short.count == 4 && short[3].contains("… 2 of 251 objects"), "\(short)")
    let json = try onTerminal("get Note --limit 2 --json")
    #expect(try Value(json: json)["objects"].items.count == 2)
    let usage = try run("get", "Note/1", "--limit", "2")
    #expect(usage.status == 64 && usage.errors.contains("--limit is for an entity"))
  }

  @Test("Nothing that a value holds commands the terminal that get shows it on")
  func escapes() throws {
    try server.client.must("PUT", "/v1/objects/Note/1/text", body: #""a\u009b2Jb\u001b]0;x\u0007""#)
    for command in [
      "get Note/1", "get Note/1 text", "get Note --keys text", "get Note --json", "export Note",
      "watch Note/1 --count 1", "watch Note/1 --json --count 1", "patch Note/1 tags=1",
    ] {
      let shown = try onTerminal(command).replacing(/\u{1B}\[[0-9;]*m/, with: "")
      #expect(!shown.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{9B}" || $0 == "\u{07}" }, "\(shown)")
    }
  }

  @Test("A list without a token says so where the server has keys, and what is not one token is refused")
  func identity() throws {
    let folder = try ScratchDirectory()
    let keys = folder.file("keys.json")
    #expect(try run("token", "--new-key", "--keys", keys).status == 0)
    let guarded = try ServerProcess(
      "--schema", PackageFolder.root + "/Config/access/feed.yaml", settings: ["access.keys": keys])
    let token = try run("token", "--keys", keys, "--sub", "eve", "--claim", "roles=[\"a\"]", "--claim", "team=A").output
    let file = try folder.write(token, to: "token")
    func keyway(_ arguments: String..., token: String = "") throws -> Outcome {
      try ChildProcess.run(
        PackageFolder.keyway, arguments, environment: ["KEYWAY_SERVER": guarded.url, "KEYWAY_TOKEN": token])
    }
    let made = try keyway("create", "Post/1", "author=eve", "text=hello", "--token-file", file)
    #expect(made.status == 0, "\(made.errors)")
    let remark = "keyway: no token was sent; the server's rules may hide objects (--token or KEYWAY_TOKEN)\n"
    for command in [["get", "Post"], ["watch", "Post", "--count", "1"]] {
      let anonymous = try ChildProcess.run(PackageFolder.keyway, command + ["--server", guarded.url])
      #expect(anonymous.status == 0 && anonymous.errors == remark, "\(command): \(anonymous.errors)")
      let known = try ChildProcess.run(PackageFolder.keyway, command + ["--server", guarded.url, "--token-file", file])
      #expect(known.status == 0 && known.errors.isEmpty, "\(command): \(known.errors)")
      let open = try ChildProcess.run(
        PackageFolder.keyway, [command[0], "Note"] + command.dropFirst(2) + ["--server", server.url])
      #expect(open.status == 0 && open.errors.isEmpty, "\(command): \(open.errors)")
    }
    #expect(try keyway("get", "Post", token: token).errors.isEmpty)
    let two = try keyway("get", "Post", token: token + token)
    #expect(two.status == 64 && two.errors.contains("KEYWAY_TOKEN has 2 words; a token is one word"), "\(two.errors)")
    let broken = try keyway("get", "Post", "--token-file", folder.write(token + "# mine", to: "noted"))
    #expect(broken.status == 64 && broken.output.isEmpty, "\(broken.errors)")
    let claim = try run("token", "--keys", keys, "--sub", "eve", "--claim", "roles=[manager]")
    #expect(claim.status == 1 && claim.errors.contains("roles=[manager] looks like JSON but is not"), "\(claim.errors)")
    #expect(try run("set", "Note/1", "tags", "[new").errors.contains("looks like JSON but is not"))
  }

  @Test("An argument that is not UTF-8 is refused, and nothing is written")
  func encoding() throws {
    for (command, place) in [
      ("set Note/1 text $'a\\xff'", "argument 4 is not UTF-8: its byte 2 is 0xFF"),
      ("create Note $'text=\\xc3'", "argument 3 is not UTF-8: its byte 6 is 0xC3"),
      ("patch Note/1 $'{\"text\":\"\\xff\"}'", "argument 3 is not UTF-8: its byte 10 is 0xFF"),
      ("get Note --filter $'text == \"\\xff\"'", "argument 4 is not UTF-8: its byte 10 is 0xFF"),
    ] {
      let outcome = try ChildProcess.run(
        "/bin/bash", ["-c", "exec \(PackageFolder.keyway) \(command)"],
        environment: ["KEYWAY_PORT": "\(server.port)"])
      #expect(outcome.status == 64 && outcome.errors.contains("Error: \(place)\n"), "\(outcome.errors)")
    }
    let piped = try ChildProcess.run(
      "/bin/bash", ["-c", "printf '{\"text\":\"\\xff\"}' | \(PackageFolder.keyway) create Note -"],
      environment: ["KEYWAY_PORT": "\(server.port)"])
    #expect(piped.status == 1 && piped.errors.contains("standard input is not JSON"), "\(piped.errors)")
    #expect(try server.client.json("/v1/objects/Note")["count"].whole == 1)
  }

  @Test("Nothing that a file, an argument or a server says commands the terminal of an error")
  func escapedErrors() throws {
    let folder = try ScratchDirectory()
    let sequence = "\u{1B}]0;x\u{07}\u{9B}2J\u{202E}"
    let rows = try folder.write("symbol,price\nA,\(sequence)\n", to: "rows.csv")
    let heads = try folder.write("symbol,\(sequence)\nA,1\n", to: "heads.csv")
    let lines = try folder.write("{\"@ref\":\"Note/7\",\"\(sequence)\":1}\n", to: "lines.jsonl")
    let schema = try folder.write("entities:\n  \"\(sequence)\": {}\n", to: "schema.yaml")
    let quotes = ["--entity", "Quote", "--id", "symbol"]
    for command in [
      ["import", rows] + quotes, ["import", heads] + quotes, ["import", lines], ["check", schema], ["get", sequence],
      ["get", "Note/\(sequence)"], ["create", "Person", "\(sequence)=1"], ["set", "Note/1", "\(sequence)", "1"],
      ["status", "--\(sequence)"], ["get", "/healthz", "--server", sequence], ["serve", "--host", sequence],
    ] {
      let outcome = try ChildProcess.run(
        PackageFolder.keyway, command, environment: ["KEYWAY_PORT": "\(server.port)"])
      #expect(outcome.status != 0, "\(command)")
      let raw = outcome.errors.unicodeScalars.filter { $0 != "\n" && $0 != "\t" }
      #expect(
        !raw.contains { [.control, .format].contains($0.properties.generalCategory) },
        "\(command): \(outcome.errors.debugDescription)")
    }
  }

  @Test("A command asks the server of keyway.yaml in its folder, and says which one it has asked in vain")
  func serverFile() throws {
    let folder = try ScratchDirectory()
    func status() throws -> Outcome {
      let child = try ChildProcess.start(PackageFolder.keyway, ["status"], folder: folder.path)
      let status = try child.exitStatus()
      return (status, child.output, child.errors)
    }
    _ = try folder.write("host: 0.0.0.0\nport: \(server.port)\n", to: "keyway.yaml")
    let found = try status()
    #expect(found.status == 0 && found.output.contains("at \(server.url): serving"), "\(found)")
    _ = try folder.write("port: 1\n", to: "keyway.yaml")
    let refused = try status()
    #expect(
      refused.errors.contains(
        "no response from http://127.0.0.1:1: the connection was refused; use --server for another address"),
      "\(refused)")
  }

  @Test("get --limit 0 prints the totals alone")
  func totals() throws {
    let totals = try Value(json: try run("get", "Note", "--limit", "0", "--aggregate", "@count").output)
    #expect(totals["objects"].items.isEmpty && totals["count"].whole ?? 0 > 0, "\(totals.json)")
    let shown = try onTerminal("get Note --limit 0 --aggregate @count")
    #expect(shown.contains("\"count\":"), "\(shown)")
  }

  @Test(
    "Every example in the help of a command is a whole line",
    arguments: [
      "keyway init", "keyway get", "keyway create", "keyway watch", "keyway import", "keyway store migrate",
      "keyway token", "keyway-bench fanout", "keyway-bench spread", "keyway-bench neighbour",
    ])
  func help(command: String) throws {
    let words = command.split(separator: " ").map(String.init)
    let program = words[0] == "keyway" ? PackageFolder.keyway : PackageFolder.keywayBench
    let help = try ChildProcess.run(program, words.dropFirst() + ["--help"])
    #expect(help.status == 0 && help.errors.isEmpty)
    let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
    let examples = lines.drop { !$0.contains(command) }.prefix { !$0.isEmpty }
    #expect(!examples.isEmpty && examples.allSatisfy { $0.contains("\(words[0]) ") }, "\(help.output)")
    if program == PackageFolder.keyway {
      #expect(lines.allSatisfy { $0.count <= 80 || $0.contains("keyway ") }, "\(help.output)")
    }
  }

  @Test("Shells get completions of every command")
  func completion() throws {
    for shell in ["bash", "zsh", "fish"] {
      let script = try run("--generate-completion-script", shell)
      #expect(script.status == 0 && script.output.contains("create"), "\(shell)")
    }
  }
}
