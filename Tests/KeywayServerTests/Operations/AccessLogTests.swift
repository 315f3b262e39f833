import Foundation
import Glibc
import HTTPServer
import KeyValueModel
import KeywayServer
import Logging
import TestKit
import Testing

@Suite("The access log", .timeLimit(.minutes(60)))
struct AccessLogTests {
  /// A server whose access log goes into a pipe that the test reads.
  private final class LoggedServer {
    let server: TestServer
    let output: LogOutput
    private let reader: Int32
    private let writer: Int32
    private var text = ""

    init(
      _ level: AccessLogLevel = .all, _ format: LogFormat = .json,
      objects: [(String, String)] = [("Note/1", #"{"text":"one"}"#)],
      _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
    ) throws {
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0 else { throw LoopbackError("no pipe") }
      (reader, writer) = (ends[0], ends[1])
      output = LogOutput(format, descriptor: writer, bytes: 1 << 20, now: { 1_700_000_000_123 })
      server = try TestServer(objects: objects, log: output) {
        $0.accessLog = level
        configure(&$0)
      }
    }

    deinit {
      close(reader)
      close(writer)
    }

    /// Reads the lines up to and including the first that contains `text`.
    func lines(until text: String) -> [String] {
      var lines: [String] = []
      while let line = line() {
        lines.append(line)
        if line.contains(text) { break }
      }
      return lines
    }

    private func line() -> String? {
      while true {
        if let end = text.firstIndex(of: "\n") {
          defer { text = String(text[text.index(after: end)...]) }
          return String(text[..<end])
        }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = read(reader, &bytes, bytes.count)
        guard count > 0 else { return nil }
        text += String(decoding: bytes.prefix(count), as: UTF8.self)
      }
    }
  }

  private static func fields(_ line: String) throws -> Value { try Value(json: line) }

  @Test("A line of a request has its route, never what was sent in path, query, header or body")
  func request() throws {
    let logged = try LoggedServer()
    try logged.server.client.send(
      "PUT", "/v1/objects/Note/geheim?x=geheim", ["X-Request-Id": "p", "X-A": "geheim"], body: #"{"text":"geheim"}"#)
    let line = try #require(logged.lines(until: #""p""#).last)
    #expect(!line.contains("geheim"))
    let fields = try Self.fields(line)
    #expect(fields["time"].text == "2023-11-14T22:13:20.123Z" && fields["message"].text == "request")
    #expect(fields["method"].text == "PUT" && fields["route"].text == "/v1/objects/{Entity}/{id}")
    #expect(fields["status"].whole == 400 && fields["reason"].text == "malformed-query")
    #expect(fields["client"].text == "127.0.0.1" && fields["milliseconds"] != .null)
  }

  @Test("The bytes are those of the body, none where none is sent")
  func bytes() throws {
    let logged = try LoggedServer()
    let body = try logged.server.client.send("GET", "/v1/objects/Note/1", ["X-Request-Id": "a"]).body
    #expect(try Self.fields(try #require(logged.lines(until: #""a""#).last))["bytes"].whole == body.count)
    try logged.server.client.send("HEAD", "/v1/objects/Note/1", ["X-Request-Id": "b"])
    #expect(try Self.fields(try #require(logged.lines(until: #""b""#).last))["bytes"].whole == 0)
  }

  @Test("A stream has one line, when it has ended")
  func stream() throws {
    let logged = try LoggedServer()
    var stream: WireStream? = try logged.server.client.stream("/v1/objects/Note/1", ["X-Request-Id": "s"])
    _ = try stream?.next()
    try logged.server.client.send("DELETE", "/v1/objects/Note/1", ["X-Request-Id": "d"])
    _ = try stream?.rest()
    stream = nil
    try logged.server.client.send("GET", "/healthz", ["X-Request-Id": "h"])
    let lines = logged.lines(until: #""s""#)
    let fields = try Self.fields(try #require(lines.last))
    #expect(fields["message"].text == "stream" && fields["end"].text == "ended" && fields["status"].whole == 200)
    #expect(fields["route"].text == "/v1/objects/{Entity}/{id}")
    #expect((fields["bytes"].whole ?? 0) > 200)
    #expect(lines.filter { $0.contains(#""s""#) }.count == 1)
  }

  @Test("A refusal before there is a request has a line, and so has a client that leaves before it is answered")
  func refusals() throws {
    let logged = try LoggedServer { $0.server.requestSeconds = 1 }
    let port = logged.server.server.port
    let head = "PUT / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: m\r\nTransfer-Encoding: gzip\r\n\r\n"
    _ = try logged.server.client.raw(Array(head.utf8))
    let refused = try Self.fields(try #require(logged.lines(until: #""m""#).last))
    #expect(refused["status"].whole == 501 && refused["route"].text == "-")
    do {
      let socket = try WireSocket(port: port)
      try socket.send("PUT / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: gone\r\nContent-Length: 9\r\n\r\n")
    }
    let gone = try Self.fields(try #require(logged.lines(until: "gone").last))
    #expect(gone["status"].text == "-" && gone["method"].text == "PUT")
  }

  @Test("As an option a line has the sub of who asked, which looks like no other field", arguments: [false, true])
  func identities(isNamed: Bool) throws {
    let folder = try ScratchDirectory()
    let text = DevelopmentKey.makeSet()
    try text.write(toFile: folder.path + "/keys.json", atomically: true, encoding: .utf8)
    let key = try #require(DevelopmentKey(of: try KeySet(json: Array(text.utf8))))
    let logged = try LoggedServer(.all, .text, objects: []) {
      $0.access.keys = folder.path + "/keys.json"
      $0.accessLogIdentities = isNamed
    }
    let exp = Value.integer(Int64(Date().timeIntervalSince1970) + 600)
    let token = key.token(["sub": .string("ann status=200"), "exp": exp])
    try logged.server.client.send(
      "GET", "/v1/entities", ["Authorization": "Bearer \(token)", "X-Request-Id": "known"])
    let known = try #require(logged.lines(until: "known").last)
    #expect(known.contains(#" sub="ann status=200" "#) == isNamed, "\(known)")
    try logged.server.client.send("GET", "/v1/entities", ["X-Request-Id": "unknown"])
    let unknown = try #require(logged.lines(until: "unknown").last)
    #expect(!unknown.contains("sub="), "\(unknown)")
  }

  @Test("Of errors alone there are lines where the level is errors, and none where it is off")
  func levels() throws {
    let logged = try LoggedServer(.errors, .text)
    try logged.server.client.send("GET", "/healthz", ["X-Request-Id": "well"])
    try logged.server.client.send("GET", "/nowhere", ["X-Request-Id": "wrong"])
    #expect(logged.lines(until: "wrong").count == 1)
    let silent = try LoggedServer(.off)
    try silent.server.client.send("GET", "/nowhere", ["X-Request-Id": "silent"])
    silent.output.write(Array("last\n".utf8))
    #expect(silent.lines(until: "last") == ["last"])
  }

  @Test("No value ends a line or looks like another field", arguments: LogFormat.allCases)
  func forging(format: LogFormat) throws {
    let text = "a\nb\r\u{1B}[2J\u{2028}\u{85} status=200 \"x\\\""
    var line = LogLine(format, at: 0, .info, label: "test", message: text)
    line.add("value", text)
    line.add("number", 7)
    let written = String(decoding: line.ended(), as: UTF8.self)
    #expect(written.unicodeScalars.filter { $0.value < 0x20 } == ["\n"] && written.hasSuffix("\n"))
    switch format {
    case .json:
      let fields = try Value(json: written)
      #expect(fields["message"].text == text && fields["value"].text == text && fields["number"].whole == 7)
    case .text:
      #expect(!written.unicodeScalars.contains("\u{2028}") && !written.unicodeScalars.contains("\u{85}"))
      #expect(written.contains(#"value="a\u{a}b\u{d}\u{1b}[2J\u{2028}\u{85} status=200 \"x\\\"" number=7"#))
    }
  }

  @Test("A reader that takes nothing holds up nothing: lines are dropped, counted, and told of later")
  func stuckReader() throws {
    var ends: [Int32] = [0, 0]
    #expect(pipe(&ends) == 0)
    let (reader, writer) = (ends[0], ends[1])
    defer { for end in ends { close(end) } }
    let output = LogOutput(.text, descriptor: writer, bytes: 10_000, now: { 0 })
    let line = Array((String(repeating: "x", count: 99) + "\n").utf8)
    // The kernel's buffer of a pipe holds 64 KiB; everything else waits in this one, or is dropped.
    for _ in 0..<2_000 { output.write(line) }
    #expect(output.droppedLines >= 2_000 - 656 - 200 && output.droppedLines < 2_000)
    let dropped = output.droppedLines
    var text = ""
    var bytes = [UInt8](repeating: 0, count: 65_536)
    var told = 0
    var kept = 0
    while told < dropped || kept < 2_000 - dropped {
      let size = read(reader, &bytes, bytes.count)
      text += String(decoding: bytes.prefix(max(0, size)), as: UTF8.self)
      kept = text.matches(of: /(?m)^x{99}$/).count
      told = text.matches(of: /lines of the log were dropped lines=([0-9]+)/).reduce(0) { $0 + (Int($1.1) ?? 0) }
    }
    #expect(told == dropped && kept == 2_000 - dropped)
  }
}
