import HTTPTypes
import Testing

@testable import HTTPServer

@Suite("A response's fields as one") struct FieldLinesTests {
  /// The first name, and the lines behind it as they are sent.
  private static func text(_ fields: FieldSection, id: String?) -> (name: String, lines: String) {
    let lines = FieldLines(fields, id: id.map { RequestID(made: $0) })
    var bytes = [UInt8](repeating: 0xFF, count: lines.byteCount)
    let start = bytes.withUnsafeMutableBytes { lines.write(to: $0) }
    func string(from start: Int) -> String { String(decoding: bytes[start...].prefix { $0 != 0 }, as: UTF8.self) }
    return (string(from: 0), string(from: start).replacingOccurrences(ofMarks: "\r\n"))
  }

  @Test("They are in order, and behind them the request's id and what all responses have")
  func order() {
    let (name, lines) = Self.text([.contentType: "text/plain", .vary: "Accept", .eTag: #""a-1""#], id: "r-1")
    #expect(name == "Content-Type")
    #expect(
      lines == "text/plain\r\nVary: Accept\r\nETag: \"a-1\"\r\nX-Request-Id: r-1\r\nX-Content-Type-Options: nosniff"
        + "\r\nCross-Origin-Resource-Policy: same-origin")
  }

  @Test("Fields that the server controls are left out, and fields without a value")
  func leftOut() {
    var fields: FieldSection = [.contentLength: "7", .date: "today", .transferEncoding: "gzip", .connection: "close"]
    fields[.location] = ""
    fields[.eTag] = "x"
    let (name, lines) = Self.text(fields, id: nil)
    #expect(name == "ETag")
    #expect(lines == "x\r\nX-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin")
  }

  @Test("Without fields and id there is what all responses have")
  func bare() {
    let (name, lines) = Self.text([:], id: nil)
    #expect(name == "X-Content-Type-Options")
    #expect(lines == "nosniff\r\nCross-Origin-Resource-Policy: same-origin")
  }

  @Test("A value cannot begin another line")
  func lineBreaks() {
    let (name, lines) = Self.text([.location: "/a\r\nX: y\u{1}\0z\u{7F}", .vary: "é\té"], id: nil)
    #expect(name == "Location")
    #expect(lines.hasPrefix("/a  X: y  z \r\nVary: é é\r\nX-Content-Type-Options: "))
  }

  @Test("A field is found, replaced and removed whatever the case of its name")
  func searching() throws {
    let name = try #require(HTTPField.Name("VARY"))
    var fields: FieldSection = [.vary: "Accept", .eTag: "x", .vary: "Origin"]
    #expect(fields[name] == "Accept, Origin" && fields.contains(name) && fields[.location] == nil)
    #expect(HTTPField.Name("Varying").map { fields.contains($0) } == false)
    #expect(fields.contains(.eTag) && !fields.contains(.accept) && !FieldSection().contains(.vary))
    fields[name] = "Cookie"
    #expect(fields.lines.map(\.name) == ["ETag", "VARY"] && fields[.vary] == "Cookie")
    fields[.eTag] = nil
    fields[.vary] = nil
    #expect(fields.lines.isEmpty && fields.byteCount == 0)
  }

  @Test("The fields of one section are appended to those of another")
  func sections() {
    let varies: FieldSection = [.vary: "Accept"]
    var fields = varies
    fields.append(contentsOf: [.eTag: "x"])
    fields.append(contentsOf: varies)
    #expect(fields.lines.map(\.name) == ["Vary", "ETag", "Vary"] && fields[.vary] == "Accept, Accept")
    #expect(varies.lines.map(\.value) == ["Accept"])
  }

  @Test("More fields than usual go over the wire too")
  func many() throws {
    let test = try TestServer { _, _ in
      .response(Response(status: .ok, fields: [.location: String(repeating: "x", count: 3_000), .vary: "Accept"]))
    }
    let client = try test.client()
    client.get("/")
    let head = client.readResponse().head
    #expect(head.contains("Location: \(String(repeating: "x", count: 3_000))\r\nVary: Accept\r\n"))
  }

  @Test("They go over the wire as so many lines")
  func wire() throws {
    let test = try TestServer { _, _ in
      .response(
        Response(status: .ok, fields: [.contentType: "text/plain", .vary: "Accept", .setCookie: "a=b; Path=/"]))
    }
    let client = try test.client()
    client.get("/", "X-Request-Id: mine\r\n")
    let lines = client.readResponse().head.split(separator: "\r\n").dropFirst().filter { !$0.hasPrefix("Date: ") }
    #expect(
      Set(lines) == [
        "Content-Type: text/plain", "Vary: Accept", "Set-Cookie: a=b; Path=/", "X-Request-Id: mine",
        "X-Content-Type-Options: nosniff", "Cross-Origin-Resource-Policy: same-origin", "Content-Length: 0",
      ])
    #expect(lines.count == 7)
  }
}

extension String {
  /// Replaces each pair of marks, which stands for a line break.
  fileprivate func replacingOccurrences(ofMarks replacement: String) -> String {
    split(separator: "\u{1}\u{1}", omittingEmptySubsequences: false).joined(separator: replacement)
  }
}
