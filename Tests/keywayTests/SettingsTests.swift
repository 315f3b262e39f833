import Cluster
import CommandSupport
import Foundation
import HTTPServer
import KeywayServer
import Store
import Testing

@testable import keyway

@Suite("Settings")
struct SettingsTests {
  private static func load(
    yaml: String? = nil, flags: [SettingFlag] = [], environment: [String: String] = [:]
  ) throws(SettingsError) -> Settings {
    let file: SettingsFile? = if let yaml { try SettingsFile(name: "k.yaml", text: yaml) } else { nil }
    return try Settings.load(file: file, flags: flags, environment: environment)
  }

  @Test("flags win over the environment, the environment over the file, the file over the defaults")
  func precedence() throws {
    let yaml = "port: 1\nheartbeat: {seconds: 2}\nfetch:\n  limit: 3\n"
    let environment = ["KEYWAY_PORT": "11", "KEYWAY_HEARTBEAT_SECONDS": "12", "PATH": "/bin"]
    let settings = try Self.load(yaml: yaml, flags: [SettingFlag("port", "21")], environment: environment)
    #expect(settings.api.port == 21)
    #expect(settings.api.heartbeatSeconds == 12)
    #expect(settings.api.pages.objects == 3)
    #expect(settings.drainSeconds == 8)
    #expect(settings.origins["port"] == .flag("--port"))
    #expect(settings.origins["heartbeat.seconds"] == .environment("KEYWAY_HEARTBEAT_SECONDS"))
    #expect(settings.origins["fetch.limit"] == .file("k.yaml", line: 4))
    #expect(settings.origins["drain.seconds"] == nil)
  }

  @Test(
    "a word that YAML 1.1 takes for a boolean is a choice where one is called so", arguments: ["off", "\"off\"", "all"])
  func booleans(word: String) throws {
    let settings = try Self.load(yaml: "log: {access: \(word)}")
    #expect(settings.api.accessLog == (word == "all" ? .all : .off))
  }

  @Test(
    "a mistake is named with its place",
    arguments: [
      ("port: 70000", "k.yaml:1: port is 70000, not between 0 and 65535"),
      ("\nport: \"8080\"", "k.yaml:2: port is \"8080\", not a whole number"),
      ("port: 80.5", "k.yaml:1: port is 80.5, not a whole number"),
      ("port:", "k.yaml:1: port is empty, not a whole number"),
      ("port: .inf", "k.yaml:1: port is .inf, not a whole number"),
      ("port: 8_080", "k.yaml:1: port is \"8_080\", not a whole number"),
      (
        "port: !port 8080",
        "k.yaml:1:7: the tag !port is unknown; the known tags are !!null, !!bool, !!int, !!float, !!str, "
          + "!!seq, !!map. A text that begins with '!' needs quotation marks"
      ),
      (
        "host: !!set {a: }",
        "k.yaml:1:7: the tag !!set is unknown; the known tags are !!null, !!bool, !!int, !!float, !!str, "
          + "!!seq, !!map. A text that begins with '!' needs quotation marks"
      ),
      ("log:\n\tformat: text", "k.yaml:2:1: not YAML: a tab cannot indent a line; use spaces"),
      ("host: 8080", "k.yaml:1: host is the number 8080, not a text"),
      ("host: [a]", "k.yaml:1: host is a list, not a text"), ("host: \"\"", "k.yaml:1: host is empty"),
      ("names: a", "k.yaml:1: names is \"a\", not a list of texts"),
      ("names: [1]", "k.yaml:1: names is a list with an element that is not a text, not a list of texts"),
      ("log: {format: xml}", "k.yaml:1: log.format is \"xml\", not one of text, json"),
      ("heartbeat:\n  second: 15", "k.yaml:2: unknown setting heartbeat.second; did you mean heartbeat.seconds?"),
      ("prot: 1", "k.yaml:1: unknown setting prot; did you mean port?"),
      ("database: {url: x}", "k.yaml:1: unknown setting database; keyway serve --print-config lists all"),
      ("heartbeat: 15", "k.yaml:1: unknown setting heartbeat; did you mean heartbeat.seconds?"),
      ("port: 1\nport: 2", "k.yaml:2:1: declared twice: port; first on line 1"),
      ("heartbeat.seconds: 1\nheartbeat: {seconds: 2}", "k.yaml:2: heartbeat.seconds is already set on line 1"),
      ("- port", "k.yaml:1: the file must be a mapping of names to values"),
      (
        "nodes: {followers: 100}",
        "k.yaml:1: nodes.followers is the number 100, not true or false; the maximum number is nodes.followersMaximum"
      ),
      ("port: {number: 1}", "k.yaml:1: port is a mapping, not a whole number"),
    ])
  func mistakes(yaml: String, message: String) {
    #expect(performing: { try Self.load(yaml: yaml) }, throws: { "\($0)" == message })
  }

  @Test(
    "numbers are those of YAML 1.2's core schema",
    arguments: [("0o17", 15), ("010", 10), ("0x1F", 31), ("!!int \"8\"", 8)])
  func numbers(text: String, number: UInt16) throws {
    #expect(try Self.load(yaml: "port: \(text)").api.port == number)
  }

  @Test("text that is no YAML is refused with its line")
  func noYAML() {
    #expect(
      performing: { try Self.load(yaml: "port: 1\nhost: [") },
      throws: { "\($0)".hasPrefix("k.yaml:3:1: not YAML: the text ends too early") })
  }

  @Test("a mistake in the environment or a flag is named by the variable and the flag")
  func otherSources() {
    #expect(
      performing: { try Self.load(environment: ["KEYWAY_REQUEST_HEADER_BYTES": "1000"]) },
      throws: { "\($0)" == "KEYWAY_REQUEST_HEADER_BYTES: request.headerBytes is 1000, not between 1024 and 65536" })
    #expect(
      performing: { try Self.load(flags: [SettingFlag(assignment: "fetch.limits=3")].compactMap(\.self)) },
      throws: { "\($0)" == "--set fetch.limits: unknown setting fetch.limits; did you mean fetch.limit?" })
    #expect(
      performing: { try Settings.load(configFile: "/nowhere/k.yaml", flags: [], environment: [:]) },
      throws: { "\($0)" == "/nowhere/k.yaml: does not exist" })
  }

  private static let logHint =
    "did you mean log.level, log.format, log.access, log.accessIdentities, log.bytes or log.conditionSeconds?"

  @Test(
    "a name that is no setting suggests what is near, and nothing else",
    arguments: [
      ("log", logHint), ("log.colour", logHint),
      ("logLevel", "did you mean log.level?"), ("snapshot", "did you mean snapshot.revisions or snapshot.bytes?"),
      ("hots", "did you mean host?"), ("a", "keyway serve --print-config lists all"),
    ])
  func suggestions(name: String, hint: String) {
    #expect(SettingsError.unknown(name) == "unknown setting \(name); \(hint)")
  }

  @Test("an unknown variable is a warning, and an empty one none at all")
  func unknownVariable() throws {
    let settings = try Self.load(
      environment: [
        "KEYWAY_PROT": "1", "KEYWAY_PORT": "", "KEYWAY_SERVER": "http://x", "KEYWAY_CONFIG": "none", "KEYWAY_X": "",
      ])
    #expect(settings.api.port == 8080)
    #expect(settings.warnings == ["the environment has KEYWAY_PROT, which is not a setting"])
  }

  @Test("what Kubernetes says of the services keyway and keyway-store is neither a setting nor a mistake")
  func serviceVariables() throws {
    let environment = [
      "KEYWAY_PORT": "tcp://10.96.0.10:8080", "KEYWAY_SERVICE_HOST": "10.96.0.10", "KEYWAY_SERVICE_PORT": "8080",
      "KEYWAY_SERVICE_PORT_HTTP": "8080", "KEYWAY_PORT_8080_TCP": "tcp://10.96.0.10:8080",
      "KEYWAY_PORT_8080_TCP_ADDR": "10.96.0.10", "KEYWAY_PORT_8080_TCP_PORT": "8080",
      "KEYWAY_PORT_8080_TCP_PROTO": "tcp", "KEYWAY_STORE_PORT": "udp://10.96.0.11:53",
      "KEYWAY_STORE_SERVICE_HOST": "10.96.0.11", "KEYWAY_STORE_PORT_53_UDP": "udp://10.96.0.11:53",
    ]
    let settings = try Self.load(environment: environment)
    #expect(settings.api.port == 8080 && settings.origins.isEmpty && settings.warnings.isEmpty)
    for setting in Settings.all {
      #expect(!ServiceVariable.matches(setting.environmentName, "8080"), "\(setting.name)")
    }
    #expect(
      performing: { try Self.load(environment: ["KEYWAY_PORT": "http://x"]) },
      throws: { "\($0)" == "KEYWAY_PORT: port is \"http://x\", not a whole number" })
  }

  @Test(
    "the configuration file is that of the flag, else of the variable, else the one in the folder",
    arguments: [
      ("a", "b", true, "a", "--config"), (nil, "b", true, "b", "KEYWAY_CONFIG"),
      (nil, "", true, "keyway.yaml", "the current folder"), (nil, nil, true, "keyway.yaml", "the current folder"),
      (nil, nil, false, nil, "the current folder"), ("none", "b", true, nil, "--config"),
      (nil, "none", true, nil, "KEYWAY_CONFIG"),
    ] as [(String?, String?, Bool, String?, String)])
  func configurationFile(
    _ flag: String?, _ variable: String?, _ exists: Bool, _ expected: String?, _ origin: String
  ) {
    let source = SettingsSource(
      config: flag, flags: [], environment: variable.map { ["KEYWAY_CONFIG": $0] } ?? [:],
      exists: { exists && $0 == "keyway.yaml" })
    #expect(source.configFile == expected && source.fileOrigin == origin)
  }

  @Test("an empty file sets nothing, and lists come from commas or from YAML", arguments: ["", "# nothing\n", "---\n"])
  func lists(_ empty: String) throws {
    #expect(try Self.load(yaml: empty).origins.isEmpty)
    #expect(try Self.load(yaml: "names: [a.example, b]").api.names == ["a.example", "b"])
    #expect(try Self.load(environment: ["KEYWAY_NAMES": "a, b,"]).api.names == ["a", "b"])
  }

  @Test("the example's objects go with the example's schema, and with no other")
  func seed() throws {
    #expect(try Self.load().seedFile == TextFile.example)
    #expect(try Self.load(flags: [SettingFlag("schema", "mine.yaml")]).seedFile == nil)
    #expect(try Self.load(yaml: "schema: example").seedFile == TextFile.example)
    #expect(try Self.load(yaml: "seed: none").seedFile == nil)
    #expect(try Self.load(yaml: "seed: mine.jsonl\nschema: mine.yaml").seedFile == "mine.jsonl")
  }

  @Test(
    "the example has a store of its own, but where an earlier version has begun one, or a schema or a store is named",
    arguments: [
      ([], [], "keyway-data/example"), ([], ["keyway-data"], "keyway-data"),
      ([], ["keyway-data", "keyway-data/example"], "keyway-data/example"),
      (["schema"], [], "keyway-data"), (["schema"], ["keyway-data/example"], "keyway-data"), (["store"], [], "x"),
      (["store", "schema"], [], "x"),
    ] as [([String], [String], String)])
  func exampleStore(_ flags: [String], _ stores: [String], _ expected: String) throws {
    let settings = try Settings.load(
      file: nil, flags: flags.map { SettingFlag($0, "x") }, environment: [:], isStore: stores.contains)
    #expect(settings.store == expected)
    // Naming the example has the same effect as the default.
    let named = try Settings.load(
      file: nil, flags: [SettingFlag("schema", TextFile.example)] + flags.map { SettingFlag($0, "x") },
      environment: [:], isStore: stores.contains)
    #expect(named.store == expected)
  }

  @Test("of settings that were read again, a running server takes those that it can, and keeps all others")
  func changes() throws {
    let former = try Self.load(yaml: "log: { level: info }\nport: 1\npublic: a\n")
    let read = try Self.load(
      yaml: "log: { level: debug, access: all }\nport: 2\npublic: b\naccess.requestsPerSecond: 9\nconsole: false\n")
    let changes = former.changes(to: read)
    #expect(changes.taken == ["access.requestsPerSecond", "public", "log.level", "log.access"])
    #expect(changes.left == ["port", "console"])
    #expect(Settings.setting(named: "log.level")?.value(changes.settings) == .text("debug"))
    #expect(changes.settings.api.access.rates.requestsPerSecond == 9)
    #expect(changes.settings.api.port == 1 && changes.settings.api.files.folder == "b")
    #expect(changes.settings.changes(to: read).taken.isEmpty)
    let without = try Self.load(yaml: "port: 1\n")
    #expect(former.changes(to: without).left == ["public"] && without.changes(to: former).left == ["public"])
    #expect(Settings.reloadable.isSubset(of: Settings.all.map(\.name)))
  }

  @Test("names are unique, defaults are allowed, and variables are named after their settings")
  func table() throws {
    let names = Settings.all.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(Set(Settings.all.map(\.environmentName)).count == names.count)
    #expect(Settings.setting(named: "request.headerBytes")?.environmentName == "KEYWAY_REQUEST_HEADER_BYTES")
    let defaults = Settings()
    for setting in Settings.all {
      var copy = defaults
      #expect(throws: Never.self) {
        try copy.set(setting.name, to: setting.value(defaults), from: .flag(setting.name))
      }
    }
  }

  @Test("each setting has a field of its own")
  func fields() throws {
    let defaults = Settings()
    for setting in Settings.all {
      guard case .integer(let value) = setting.value(defaults) else { continue }
      var copy = defaults
      try copy.set(setting.name, to: .integer(value > 1 ? value - 1 : 1), from: .flag(setting.name))
      let changed = Settings.all.filter { $0.value(copy) != $0.value(defaults) }.map(\.name)
      #expect(changed == (value == 1 ? [] : [setting.name]))
    }
    var copy = defaults
    try copy.set("heartbeat.seconds", to: .integer(7), from: .flag(""))
    #expect(copy.api.server.heartbeatSeconds == 7 && copy.api.streams.heartbeatSeconds == 7)
    try copy.set("request.steps", to: .integer(7000), from: .flag(""))
    #expect(copy.api.requests.steps == 7000 && copy.api.store.queryOpeningCost == 7000)
    #expect(defaults.api.server.heartbeatSeconds == defaults.api.streams.heartbeatSeconds)
    #expect(defaults.api.requests.steps == defaults.api.store.queryOpeningCost)
    #expect(defaults.api.server.threads == 0 && defaults.api.requests.threads == 0)
    for (threads, long) in [(0, 0), (1, 2), (8, 8)] {
      try copy.set("http.threads", to: .integer(threads), from: .flag(""))
      #expect(copy.api.server.threads == threads && copy.api.requests.threads == long)
    }
  }

  @Test("A property without a setting of its own is part of one that has")
  func parts() throws {
    let totals = Settings.all.filter {
      ["nodes.forwarding", "requests.waiting", "writes.queued", "fetch.pages"].contains($0.name)
    }
    func values(_ settings: Settings) -> [Int] {
      let api = settings.api
      return [
        api.cluster.forwarding.waitingPerClient, api.requests.waitingPerClient, api.store.queuedWritesPerClient,
        api.pages.clientFetches,
      ]
    }
    let defaults = Settings()
    var copy = defaults
    for total in totals { try copy.set(total.name, to: total.value(defaults), from: .flag("")) }
    #expect(values(copy) == values(defaults))
    for total in totals { try copy.set(total.name, to: .integer(80), from: .flag("")) }
    #expect(values(copy) == [20, 20, 70, 5])
    for total in totals { try copy.set(total.name, to: .integer(1), from: .flag("")) }
    #expect(values(copy) == [1, 1, 1, 1])
    #expect(defaults.api.store.queryFilterCost == 2_000_000)
  }

  @Test("what is printed says where each value comes from, and loads to the same settings")
  func rendering() throws {
    let flags = [
      SettingFlag("port", "9000"), SettingFlag("host", "::"), SettingFlag("store", "yes"),
      SettingFlag("names", "a.example,*.b"), SettingFlag("schema", "a: \"b\" # c"),
    ]
    let text = try Self.load(yaml: "drain: {seconds: 3}", flags: flags).rendered()
    #expect(text.contains("port: 9000                      # --port\n"))
    #expect(text.contains("drain:\n  seconds: 3                    # k.yaml:1\n"))
    #expect(text.contains("heartbeat:\n  seconds: 15                   # default\n"))
    let again = try Self.load(yaml: text)
    #expect(
      again.rendered { _ in "" } == (try Self.load(yaml: "drain: {seconds: 3}", flags: flags)).rendered { _ in "" })
  }

  /// Returns the text of a file of the package.
  private static func file(_ path: String) throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  @Test("Every limit is a setting, and every number that is no limit is known as such")
  func limits() {
    let names = SettingLimit.all.map(\.name)
    #expect(Set(names).count == names.count)
    #expect(Set(names).isSubset(of: Settings.all.map(\.name)))
    let numbers = Settings.all.filter { if case .integer = $0.value(Settings()) { true } else { false } }
    let others: Set = ["port", "http.threads", "heartbeat.seconds"]
    #expect(Set(numbers.map(\.name)).subtracting(names) == others)
  }

  @Test("Config/keyway.yaml and the table of Limits.md are what `keyway settings` writes")
  func reference() throws {
    #expect(try Self.file("Config/keyway.yaml") == SettingsReference.configurationFile)
    let page = try Self.file("Sources/keyway/Documentation.docc/Limits.md")
    #expect(page == SettingsReference.limits(in: page))
    for setting in Settings.all { #expect(page.contains("\n| `\(setting.name)` |"), "\(setting.name)") }
    #expect(Set(Settings.first).isSubset(of: Settings.all.map(\.name)))
  }

  @Test("The settings are shown without the passwords of nodes.journal, however these are written")
  func passwords() throws {
    let cases: [(address: String, shown: String)] = [
      ("none", "none"),
      ("postgres://db/keyway", "postgres://db/keyway"),
      ("postgres://ann:S3cret@db:5432/keyway", "postgres://ann:***@db:5432/keyway"),
      ("postgresql://ann:S3cret%40x@a,b/keyway?sslmode=require", "postgresql://ann:***@a,b/keyway?sslmode=require"),
      (
        "postgres://ann@db/keyway?password=S3cret&sslmode=require",
        "postgres://ann@db/keyway?password=***&sslmode=require"
      ),
      ("postgres://db/keyway?sslpassword=S3cret", "postgres://db/keyway?sslpassword=***"),
      ("host=db password=S3cret dbname=keyway", "host=db password=*** dbname=keyway"),
      (#"host=db password = 'S3cret \' S3cret' user=ann"#, "host=db password = *** user=ann"),
      ("postgres://db/keyway?p%61ssword=S3cret", "***"),
      ("host=db S3cret", "***"),
    ]
    for (address, shown) in cases {
      let flags = [SettingFlag("nodes.journal", address)]
      let settings = try Settings.load(configFile: nil, flags: flags, environment: [:])
      #expect(settings.api.cluster.journal == address)
      let text = settings.rendered()
      #expect(!text.contains("S3cret"), "\(address)")
      #expect(
        text.contains(Settings.yaml(.text(shown))),
        "\(address): \(text.split(separator: "\n").first { $0.contains("journal") } ?? "")")
    }
  }
}

@Suite("The table of metrics")
struct MetricsReferenceTests {
  @Test("The table of Metrics.md is what `keyway settings` writes")
  func table() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let page = try String(
      contentsOf: root.appending(path: "Sources/keyway/Documentation.docc/Metrics.md"), encoding: .utf8)
    #expect(page.contains("| `keyway_build_info` |"))
    #expect(page == MetricsReference.metrics(in: page))
  }
}
