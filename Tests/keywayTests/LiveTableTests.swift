import KeyValueModel
import KeywayClient
import TestKit
import Testing

@testable import keyway

@Suite("The live table of watch") struct LiveTableTests {
  private static let results = ServerSentEvent(
    id: "k-100", event: "results",
    data: """
      {"revision":100,"initial":true,"count":3,"total":3,"objects":[
      {"@ref":"Airport/ABI","@revision":7,"city":"Abilene","latitude":32.41,"tower":true},
      {"@ref":"Airport/AUS","@revision":7,"city":"Austin","latitude":30.2,"tower":null},
      {"@ref":"Airport/DAL","@revision":9,"city":"Dallas","latitude":null}]}
      """)

  private static let content = ServerSentEvent(
    id: "k-101", event: "content",
    data: """
      {"revision":101,"count":4,"total":4,"changes":[
      {"type":"delete","object":"Airport/AUS","index":1,"reason":"left"},
      {"type":"move","object":"Airport/DAL","index":2,"newIndex":0,"keys":["city"],
      "value":{"@ref":"Airport/DAL","city":"Aallas","latitude":null}},
      {"type":"insert","object":"Airport/IAH","newIndex":2,"reason":"created",
      "value":{"@ref":"Airport/IAH","city":"Houston","latitude":29.98}},
      {"type":"insert","object":"Airport/LBB","newIndex":3,"reason":"entered",
      "value":{"@ref":"Airport/LBB","city":"Lubbock","latitude":33.66}},
      {"type":"update","object":"Airport/ABI","index":0,"newIndex":1,"keys":["latitude"],
      "value":{"@ref":"Airport/ABI","city":"Abilene","latitude":-32.5,"tower":true}}]}
      """)

  private static let size = TerminalSize(columns: 50, rows: 12)

  @Test("it shows the rows below the names of their keys, and how the stream is doing")
  func rows() throws {
    var table = LiveTable()
    #expect(text(table, Self.size) == ["  @ref", "  no results yet", "0 rows · connecting"])
    table.note(.opened)
    try table.apply(Self.results)
    #expect(
      text(table, Self.size) == [
        "  @ref         city     latitude  tower", "  Airport/ABI  Abilene     32.41  true",
        "  Airport/AUS  Austin       30.2  null", "  Airport/DAL  Dallas       null", "k-100 · 3 rows · live",
      ])
  }

  @Test("what the last content did is marked, until the next one")
  func marks() throws {
    var table = LiveTable()
    try table.apply(Self.results)
    try table.apply(Self.content)
    let lines = table.lines(for: Self.size)
    #expect(
      lines.map { trimmed($0.text) } == [
        "  @ref         city     latitude  tower", "↑ Airport/DAL  Aallas       null",
        "• Airport/ABI  Abilene     -32.5  true", "+ Airport/IAH  Houston     29.98",
        "+ Airport/LBB  Lubbock     33.66", "k-101 · 4 rows · live · +2 −1 ↕1 •1",
      ])
    #expect(lines[1].spans.map(\.style) == [[.yellow, .inverse], [], .yellow])
    #expect(lines[2].spans.map(\.style) == [.bold, [], .bold])
    #expect(lines[3].spans.map(\.style) == [.green, [], .green])
    try table.apply(ServerSentEvent(id: "k-103", event: "heartbeat", data: "{}"))
    #expect(table.marks.count == 4 && table.cursor == "k-103")
    try table.apply(
      ServerSentEvent(
        id: "k-104", event: "content",
        data: """
          {"revision":104,"count":4,"total":4,"changes":[{"type":"move","object":"Airport/DAL","index":0,"newIndex":3,
          "value":{"city":"Zallas"}}]}
          """))
    #expect(text(table, Self.size)[4] == "↓ Airport/DAL  Zallas")
    #expect(table.marks.count == 1)
  }

  @Test("only the keys that were asked for are columns, and @ref before them")
  func keys() throws {
    var table = LiveTable(keys: ["latitude", "zip"])
    try table.apply(Self.results)
    #expect(
      text(table, Self.size).prefix(2) == ["  @ref         latitude  zip", "  Airport/ABI     32.41"])
  }

  @Test("sections have headings")
  func sections() throws {
    var table = LiveTable(keys: ["city"])
    try table.apply(
      ServerSentEvent(
        id: "k-1", event: "results",
        data: """
          {"revision":1,"count":3,"total":3,
          "objects":[{"@ref":"A/1","city":"x"},{"@ref":"A/2","city":"y"},{"@ref":"A/3"}],
          "sections":[{"name":null,"count":1},{"name":"T\\u001bX","count":2}]}
          """))
    #expect(
      text(table, TerminalSize(columns: 20, rows: 9)) == [
        "  @ref  city", "── null (1) ────────", "  A/1   x", "── T␛X (2) ─────────", "  A/2   y", "  A/3",
        "k-1 · 3 rows · live",
      ])
    #expect(
      text(table, TerminalSize(columns: 20, rows: 6)) == [
        "  @ref  city", "── null (1) ────────", "  A/1   x", "  … 2 more rows", "k-1 · 3 rows · live",
      ])
  }

  @Test("where there is no room the widest columns give way, then the last ones")
  func narrow() throws {
    var table = LiveTable()
    try table.apply(Self.results)
    #expect(
      text(table, TerminalSize(columns: 36, rows: 5)) == [
        "  @ref      city     latitude  tower", "  Airport…  Abilene     32.41  true",
        "  Airport…  Austin       30.2  null", "  Airport…  Dallas       null", "k-100 · 3 rows · live",
      ])
    #expect(
      text(table, TerminalSize(columns: 30, rows: 4)) == [
        "  @ref       city     latitude", "  Airport/…  Abilene     32.41", "  … 2 more rows",
        "k-100 · 3 rows · live · 1 col…",
      ])
  }

  @Test("the status tells how the connection is; reset and results replace the rows")
  func connection() throws {
    var table = LiveTable()
    try table.apply(Self.results)
    try table.apply(ServerSentEvent(id: "k-100", event: "bye", data: #"{"reason":"shutdown"}"#))
    #expect(text(table, Self.size).last == "k-100 · 3 rows · bye: shutdown")
    table.note(.reconnecting(reason: "the connection was lost", delayMilliseconds: 950))
    #expect(text(table, Self.size).last == "k-100 · 3 rows · the connection was lost; coming …")
    table.note(.opened)
    try table.apply(ServerSentEvent(id: "k-100", event: "reset", data: #"{"reason":"epoch","revision":1}"#))
    #expect(text(table, Self.size).last == "k-100 · 3 rows · reset: epoch")
    try table.apply(
      ServerSentEvent(id: "q-1", event: "results", data: #"{"revision":1,"count":0,"total":0,"objects":[]}"#))
    #expect(text(table, Self.size) == ["  @ref", "  no rows", "q-1 · 0 rows · live"])
  }

  @Test("no line is wider than the terminal or holds a control character, and there are no more than it has")
  func bounds() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<300 {
      let objects = (0..<Int.random(in: 0...12, using: &random)).map { number in
        var object: JSONObject = ["@ref": .string("A/\(number)")]
        for key in ["a", "b\u{9B}", "c"] { object[key] = .string(RandomText.text(using: &random)) }
        return Value.object(object)
      }
      var results: JSONObject = [
        "revision": .integer(1), "count": .integer(Int64(objects.count)),
        "total": .integer(Int64(objects.count)), "objects": .array(objects),
      ]
      if !objects.isEmpty, Bool.random(using: &random) {
        let name = Value.string(RandomText.text(using: &random))
        results["sections"] = .array([.object(["name": name, "count": .integer(Int64(objects.count))])])
      }
      var table = LiveTable()
      let id = RandomText.text(using: &random)
      try table.apply(ServerSentEvent(id: id, event: "results", data: Value.object(results).json))
      let size = TerminalSize(
        columns: Int.random(in: 1...60, using: &random), rows: Int.random(in: 1...16, using: &random))
      let lines = table.lines(for: size)
      #expect((1...size.rows).contains(lines.count), "seed \(seed)")
      for line in lines {
        let width = TerminalText.width(line.text)
        #expect(width <= max(size.columns, LiveTable.minimumColumns), "seed \(seed): \(line.text)")
        #expect(!RandomText.commands(line.text), "seed \(seed)")
      }
    }
  }

  @Test("a drawing goes over the one before, begins anew on another size, and gives the cursor back")
  func screen() {
    var screen = TableScreen(isColoured: true)
    let lines = [StyledLine("a"), StyledLine("b", [.bold, .green])]
    let drawn = "a\u{1B}[K\r\n\u{1B}[1;32mb\u{1B}[0m\u{1B}[K\u{1B}[J"
    #expect(screen.draw(lines, size: Self.size) == "\u{1B}[?25l\u{1B}[?7l" + drawn)
    #expect(screen.draw(lines, size: Self.size) == "\r\u{1B}[1A" + drawn)
    #expect(screen.draw(lines, size: TerminalSize(columns: 9, rows: 9)) == "\u{1B}[H\u{1B}[2J" + drawn)
    #expect(screen.end() == "\r\n\u{1B}[?7h\u{1B}[?25h")
    #expect(screen.draw(lines, size: Self.size).isEmpty && screen.end().isEmpty)
    var plain = TableScreen(isColoured: false)
    #expect(plain.draw(lines, size: Self.size).hasSuffix("\r\n\u{1B}[1mb\u{1B}[0m\u{1B}[K\u{1B}[J"))
  }

  private func text(_ table: LiveTable, _ size: TerminalSize) -> [String] {
    table.lines(for: size).map { trimmed($0.text) }
  }

  private func trimmed(_ text: String) -> String {
    String(text.reversed().drop { $0 == " " }.reversed())
  }
}
