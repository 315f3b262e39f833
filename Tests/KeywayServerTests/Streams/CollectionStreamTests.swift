import KeyValueModel
import KeywayServer
import TestKit
import Testing

@Suite("Streams of to-manys")
struct CollectionStreamTests {
  private let server: TestServer

  init() throws { server = try CollectionFixture.server() }

  /// A write of a to-many, and the change that each combination of options receives.
  struct Telling: Sendable, CustomTestStringConvertible {
    let keyPath: String
    let method: String
    var query = ""
    let body: String?
    let kind: String
    var indexes: String?
    var old: String?
    var new: String?

    var testDescription: String { "\(method) \(keyPath)\(query)" }

    /// Returns the change for a set of options.
    func change(_ options: Set<String>, isPrior: Bool) -> String {
      var text = #"{"object":"Department/1","keyPath":"\#(keyPath)","kind":"\#(kind)""#
      if isPrior { text += #","prior":true"# }
      if let indexes { text += #","indexes":\#(indexes)"# }
      // The prior of an insertion has an old value too: an empty one.
      if options.contains("old"), let old = old ?? (isPrior ? "[]" : nil) { text += #","old":\#(old)"# }
      if !isPrior, options.contains("new"), let new { text += #","new":\#(new)"# }
      return text + "}"
    }
  }

  static let tellings = [
    Telling(
      keyPath: "employees", method: "POST", query: "?index=0,2", body: #"["Manager/1","Employee/4"]"#,
      kind: "insertion", indexes: "[0,2]", new: #"["Manager/1","Employee/4"]"#),
    Telling(
      keyPath: "employees", method: "POST", body: #"{"@ref":"Employee/9"}"#, kind: "insertion", indexes: "[3]",
      new: #"["Employee/9"]"#),
    Telling(
      keyPath: "employees", method: "DELETE", query: "?index=2,0", body: nil, kind: "removal", indexes: "[0,2]",
      old: #"["Employee/1","Employee/3"]"#),
    Telling(
      keyPath: "employees", method: "DELETE", query: "?object=Employee/2", body: nil, kind: "removal", indexes: "[1]",
      old: #"["Employee/2"]"#),
    Telling(
      keyPath: "employees", method: "PUT", query: "?index=1", body: #""Employee/4""#,
      kind: "replacement", indexes: "[1]", old: #"["Employee/2"]"#, new: #"["Employee/4"]"#),
    Telling(
      keyPath: "employees", method: "PUT", body: #"["Employee/3"]"#, kind: "setting",
      old: #"["Employee/1","Employee/2","Employee/3"]"#, new: #"["Employee/3"]"#),
    Telling(
      keyPath: "employees", method: "DELETE", body: nil, kind: "setting",
      old: #"["Employee/1","Employee/2","Employee/3"]"#, new: "[]"),
    Telling(
      keyPath: "marks", method: "POST", query: "?index=1", body: "15", kind: "insertion", indexes: "[1]", new: "[15]"),
    Telling(keyPath: "tags", method: "POST", body: #"["c","a"]"#, kind: "insertion", new: #"["c"]"#),
    Telling(
      keyPath: "tags", method: "DELETE", query: "?value=[%22b%22,%22x%22]", body: nil, kind: "removal",
      old: #"["b"]"#),
    Telling(
      keyPath: "tags", method: "POST", query: "?operation=union", body: #"["a","c"]"#, kind: "insertion",
      new: #"["c"]"#),
    Telling(
      keyPath: "tags", method: "POST", query: "?operation=minus", body: #"["a","c"]"#, kind: "removal",
      old: #"["a"]"#),
    Telling(
      keyPath: "tags", method: "POST", query: "?operation=intersect", body: #"["a","c"]"#, kind: "removal",
      old: #"["b"]"#),
    Telling(
      keyPath: "tags", method: "POST", query: "?operation=set", body: #"["a","c"]"#, kind: "replacement",
      old: #"["b"]"#, new: #"["c"]"#),
    Telling(
      keyPath: "tags", method: "POST", query: "?operation=set", body: #"["a","b","c"]"#, kind: "replacement",
      old: "[]", new: #"["c"]"#),
  ]

  static let options: [Set<String>] = [
    [], ["new"], ["old"], ["old", "new"], ["prior"], ["prior", "old"], ["prior", "new"], ["prior", "old", "new"],
  ]

  @Test(
    "Every write is told as its kind with its indexes, and old and new are there as the table says", arguments: tellings
  )
  func table(_ telling: Telling) throws {
    let target = "/v1/objects/Department/1/\(telling.keyPath)"
    let streams = try Self.options.map { options in
      let names = options.isEmpty ? "none" : options.sorted().joined(separator: ",")
      return (options, try server.client.stream("\(target)?options=\(names)"))
    }
    try server.client.must(telling.method, target + telling.query, body: telling.body)
    let revision = try server.revision
    for (options, stream) in streams {
      let priors = options.contains("prior") ? [telling.change(options, isPrior: true)] : []
      let changes = (priors + [telling.change(options, isPrior: false)]).joined(separator: ",")
      #expect(try stream.next().data == #"{"revision":\#(revision),"changes":[\#(changes)]}"#)
    }
  }

  @Test("The state at subscription is the whole value, as a setting")
  func initial() throws {
    let stream = try server.client.stream("/v1/objects/Department/1/employees,tags,employees.@count")
    #expect(
      try stream.next().changes.map(\.json) == [
        #"{"object":"Department/1","keyPath":"employees","kind":"setting","#
          + #""new":["Employee/1","Employee/2","Employee/3"]}"#,
        #"{"object":"Department/1","keyPath":"tags","kind":"setting","new":["a","b"]}"#,
        #"{"object":"Department/1","keyPath":"employees.@count","kind":"setting","new":3}"#,
      ])
  }

  @Test("Operators and computed keys are told as settings: of the members that come and go, and of their values")
  func operators() throws {
    let paths = "employees.@count,employees.@sum.salary,total"
    let stream = try server.client.stream("/v1/objects/Department/1/\(paths)?options=old,new")
    try server.client.must("POST", "/v1/objects/Department/1/employees", body: #""Employee/4""#)
    let inserted = try stream.next().changes
    #expect(Set(inserted.compactMap { $0["keyPath"].text }) == ["employees.@count", "employees.@sum.salary", "total"])
    #expect(inserted.allSatisfy { $0["kind"].text == "setting" && !$0.has("indexes") })
    try server.set("Employee/4/salary", "1")
    let set = try stream.next().changes
    #expect(Set(set.compactMap { $0["keyPath"].text }) == ["employees.@sum.salary", "total"])
    #expect(set.allSatisfy { $0["old"].double == 1000 && $0["new"].double == 601 })
  }

  @Test("The far side of an insertion is told too, in the same event")
  func farSide() throws {
    let employee = try server.subscribed("Employee/1/department")
    let left = try server.client.stream("/v1/objects/Department/1/employees?options=old")
    try server.client.must("POST", "/v1/objects/Department/2/employees", body: #""Employee/1""#)
    #expect(try employee.next().changes.map { $0["new"].text } == ["Department/2"])
    #expect(
      try left.next().changes.map(\.json) == [
        #"{"object":"Department/1","keyPath":"employees","kind":"removal","indexes":[0],"old":["Employee/1"]}"#
      ])
  }

  @Test("A cell is told kinds and indexes; off screen it remembers, and gets one change of each")
  func cells() throws {
    let stream = try server.client.stream("/v1/streams")
    let path = "/v1/streams/\(try #require(stream.next().json["stream"].text))/cells/a"
    let binding = #"{"object":"Department/1","keyPaths":["employees","tags"],"options":["old","new"],"context":"c"}"#
    try server.client.must("PUT", path, body: binding)
    let employees = "/v1/objects/Department/1/employees"
    try server.client.must("DELETE", employees + "?index=1")
    #expect(
      try stream.next().changes.map(\.json) == [
        #"{"cell":"a","object":"Department/1","keyPath":"employees","kind":"removal","indexes":[1],"#
          + #""old":["Employee/2"],"context":"c"}"#
      ])
    try server.client.must("PATCH", path, body: #"{"visible":false}"#)
    try server.client.must("POST", employees, body: #""Employee/4""#)
    try server.client.must("DELETE", employees + "?index=0")
    try server.client.must("POST", "/v1/objects/Department/1/tags", body: #""c""#)
    #expect(try server.client.json(path)["pending"].whole == 3)
    try server.client.must("PATCH", path, body: #"{"visible":true}"#)
    #expect(
      try stream.next().changes.map(\.json) == [
        #"{"cell":"a","object":"Department/1","keyPath":"employees","kind":"setting","#
          + #""old":["Employee/1","Employee/3"],"new":["Employee/3","Employee/4"],"context":"c","coalesced":2}"#,
        #"{"cell":"a","object":"Department/1","keyPath":"tags","kind":"insertion","new":["c"],"context":"c","#
          + #""coalesced":1}"#,
      ])
  }

  @Test("A change without the options old and new has only its kind and indexes, also when merged")
  func withoutValues() throws {
    let stream = try server.client.stream("/v1/streams")
    let path = "/v1/streams/\(try #require(stream.next().json["stream"].text))/cells/a"
    try server.client.must(
      "PUT", path, body: #"{"object":"Department/1","keyPaths":["marks"],"options":[],"visible":false}"#)
    try server.client.must("POST", "/v1/objects/Department/1/marks", body: "40")
    try server.client.must("PATCH", path, body: #"{"visible":true}"#)
    #expect(
      try stream.next().changes.map(\.json) == [
        #"{"cell":"a","object":"Department/1","keyPath":"marks","kind":"insertion","indexes":[3],"coalesced":1}"#
      ])
  }

  private func write(_ generator: inout SplitMix64) throws {
    let employees = "/v1/objects/Department/1/employees"
    let number = Int.random(in: 1...4, using: &generator)
    let member = "\"Employee/\(number)\""
    switch Int.random(in: 0..<8, using: &generator) {
    case 0: try server.client.send("POST", employees + "?index=0", body: member)
    case 1: try server.client.send("POST", employees, body: member)
    case 2: try server.client.send("DELETE", employees + "?index=0")
    case 3: try server.client.send("DELETE", employees + "?object=Employee/\(number)")
    case 4: try server.client.send("PUT", employees + "?index=0", ["Keyway-Writer": "w"], body: member)
    case 5: try server.set("Employee/\(number)/department", number > 2 ? "null" : #""Department/1""#)
    case 6: try server.client.must("POST", "/v1/objects/Department/1/tags?operation=set", body: #"["a","t\#(number)"]"#)
    default:
      try server.commit(
        #"{"op":"set","object":"Department/1","keyPath":"employees","#
          + #""value":["Employee/2","Employee/\#(number == 2 ? 3 : number)"]}"#,
        #"{"op":"set","object":"Employee/\#(number)","keyPath":"salary","value":\#(number)}"#,
        #"{"op":"remove","object":"Department/1","keyPath":"employees","index":[1]}"#)
    }
  }

  @Test("A client that resumes with any id gets byte for byte what an unbroken stream got", arguments: 0..<3)
  func resume(_ round: Int) throws {
    var generator = SplitMix64(seed: seed)
    let watched = "/v1/objects/Department/1/employees,tags,employees.@sum.salary,total?options=old,new,prior"
    let unbroken = try server.client.stream(watched)
    let start = try server.revision
    for _ in 0..<30 { try write(&generator) }
    try server.set("Department/1/tags", "[]")
    let end = try server.revision
    let events = try unbroken.events { $0.json["revision"].whole == end }
    for since in start...end {
      let expected = events.filter { ($0.json["revision"].whole ?? -1) > since }
      let resumed = try server.client.stream(watched, ["Last-Event-ID": "\(server.epoch)-\(since)"])
      let told = try expected.map { _ in try resumed.next().withoutRetry }
      #expect(told == expected, "seed \(seed), since \(since)")
    }
  }

  @Test("A client that applies what it is told has what the server has", arguments: 0..<2)
  func applying(_ round: Int) throws {
    var generator = SplitMix64(seed: seed)
    let stream = try server.client.stream("/v1/objects/Department/1/employees,tags")
    var lists: [String: [Value]] = [:]
    for change in try stream.next().changes { lists[change["keyPath"].text ?? ""] = change["new"].items }
    for _ in 0..<40 { try write(&generator) }
    try server.set("Department/1/tags", #"["end"]"#)
    let end = try server.revision
    // Without old values, the removed members of an unordered collection are unknown.
    for event in try stream.events(until: { $0.json["revision"].whole == end }) {
      for change in event.changes where change["keyPath"].text == "employees" {
        apply(change, to: &lists["employees", default: []])
      }
    }
    #expect(lists["employees"] == (try server.client.json("/v1/objects/Department/1/employees").items), "seed \(seed)")
  }

  private func apply(_ change: Value, to list: inout [Value]) {
    let indexes = change["indexes"].items.compactMap(\.whole)
    let new = change["new"].items
    switch change["kind"].text {
    case "insertion": for (index, member) in zip(indexes, new) { list.insert(member, at: index) }
    case "removal": for index in indexes.reversed() { list.remove(at: index) }
    case "replacement": for (index, member) in zip(indexes, new) { list[index] = member }
    default: list = new
    }
  }
}
