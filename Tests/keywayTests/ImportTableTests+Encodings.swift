import ArgumentParser
import Testing

@testable import keyway

extension ImportTableTests {
  private static let utf16: [UInt8] = [0x6E, 0, 0x61, 0, 0x6D, 0, 0x65, 0, 0x0A, 0, 0xAC, 0x20, 0x3D, 0xD8, 0x00, 0xDE]
  private static var swapped: [UInt8] {
    stride(from: 0, to: utf16.count, by: 2).flatMap { [utf16[$0 + 1], utf16[$0]] }
  }
  private static func file(_ header: String, _ bytes: [UInt8]) -> [UInt8] { Array(header.utf8) + bytes }

  private static let otherEncoding =
    "--encoding names the encoding of the file; windows-1252 is that of many spreadsheets in Europe and America"
  private static func wrong(_ encoding: String) -> String {
    "--encoding names another encoding than \(encoding); without it, the file is UTF-8, or UTF-16 by its mark"
  }

  static let encodings: [Case] = [
    Case("UTF-8", "name\nä→😀\n", "", #"{"name":"ä→😀"}"#),
    Case("UTF-8 with a byte order mark", "\u{FEFF}name\nä\n", "", #"{"name":"ä"}"#),
    Case("UTF-8 with a byte order mark, named", "\u{FEFF}name\nä\n", "--encoding utf-8", #"{"name":"ä"}"#),
    Case(
      "UTF-8 with a byte order mark, named otherwise", "\u{FEFF}name\nä\n", "--encoding windows-1252",
      "1: the file begins with the byte order mark of UTF-8, but --encoding is windows-1252"
        + " → without --encoding it is read as UTF-8"),
    Case("a byte order mark that is not the first", "name\n\u{FEFF}ä\n", "", "{\"name\":\"\u{FEFF}ä\"}"),
    Case(
      "Latin-1 read as UTF-8", bytes: file("name,note\na,b\nä,Caf", [0xE9, 0x0A]), "",
      [#"{"name":"a","note":"b"}"#, "3: byte 7 of the line is not UTF-8: 0xE9 → \(otherEncoding)"]),
    Case("Latin-1", bytes: file("name\nCaf", [0xE9, 0x0A]), "--encoding latin1", [#"{"name":"Café"}"#]),
    Case("ISO 8859-1", bytes: file("name\nCaf", [0xE9, 0x0A]), "--encoding ISO-8859-1", [#"{"name":"Café"}"#]),
    Case(
      "Windows-1252", bytes: file("name\n", [0x80, 0x93, 0xFC, 0x94]), "--encoding windows-1252",
      [#"{"name":"€“ü”"}"#]),
    Case(
      "a byte that Windows-1252 lacks", bytes: file("name\nx\n", [0xE9, 0x81]), "--encoding windows-1252",
      [#"{"name":"x"}"#, "3: character 2 of the line is not windows-1252: 0x81 → \(wrong("windows-1252"))"]),
    Case("KOI8-R", bytes: file("name\n", [0xC4, 0xC1]), "--encoding koi8-r", [#"{"name":"да"}"#]),
    Case("Shift JIS", bytes: file("name\n", [0x93, 0xFA, 0x96, 0x7B]), "--encoding sjis", [#"{"name":"日本"}"#]),
    Case(
      "a letter that waits for its accent at the end", bytes: file("name\n", [0x61]), "--encoding windows-1258",
      [#"{"name":"a"}"#]),
    Case("UTF-16LE", bytes: utf16, "--encoding utf-16le", [#"{"name":"€😀"}"#]),
    Case("UTF-16LE with a byte order mark", bytes: [0xFF, 0xFE] + utf16, "", [#"{"name":"€😀"}"#]),
    Case(
      "UTF-16LE with its mark, named", bytes: [0xFF, 0xFE] + utf16, "--encoding utf-16le", [#"{"name":"€😀"}"#]),
    Case("UTF-16BE", bytes: swapped, "--encoding utf-16be", [#"{"name":"€😀"}"#]),
    Case("UTF-16BE with a byte order mark", bytes: [0xFE, 0xFF] + swapped, "", [#"{"name":"€😀"}"#]),
    Case(
      "UTF-16 with its mark, named", bytes: [0xFE, 0xFF] + swapped, "--encoding utf-16", [#"{"name":"€😀"}"#]),
    Case(
      "UTF-16LE without a mark", bytes: utf16, "",
      ["1: the file is not UTF-8 but looks like UTF-16 → --encoding utf-16le reads it"]),
    Case(
      "UTF-16BE without a mark", bytes: swapped, "",
      ["1: the file is not UTF-8 but looks like UTF-16 → --encoding utf-16be reads it"]),
    Case(
      "half of a surrogate pair", bytes: [0xFF, 0xFE] + utf16.dropLast(2), "",
      ["2: character 2 of the line is not UTF-16LE: 0x3D 0xD8, where the file ends → \(otherEncoding)"]),
    Case(
      "UTF-8 that is cut at the end of the file", bytes: file("name\nab\nx", [0xE2, 0x82]), "",
      [#"{"name":"ab"}"#, "3: byte 2 of the line is not UTF-8: 0xE2 0x82, where the file ends → \(otherEncoding)"]),
    Case(
      "UTF-8 that is cut within a line", bytes: file("name\nab\nx", [0xE2, 0x82, 0x0A]), "",
      [#"{"name":"ab"}"#, "3: byte 2 of the line is not UTF-8: 0xE2 0x82 → \(otherEncoding)"]),
    Case(
      "a surrogate in UTF-8", bytes: file("name\n", [0xED, 0xA0, 0x80]), "--encoding utf-8",
      ["2: byte 1 of the line is not utf-8: 0xED → \(wrong("utf-8"))"]),
    Case(
      "a character above U+10FFFF", bytes: file("name\n", [0xF4, 0x90, 0x80, 0x80]), "",
      ["2: byte 1 of the line is not UTF-8: 0xF4 → \(otherEncoding)"]),
    Case(
      "a mistake behind the first piece of a long file",
      bytes: file("name,note\n", Array(repeatElement(Array("ä,\n".utf8), count: 20_000).joined()) + [0x61, 0xFF]), "",
      repeatElement(#"{"name":"ä"}"#, count: 20_000) + [
        "20002: byte 2 of the line is not UTF-8: 0xFF → \(otherEncoding)"
      ]),
  ]

  @Test("A file in pieces of any size has the same text", arguments: encodings)
  func pieces(_ example: Case) throws {
    let encoding = example.arguments.last
    func text(_ size: Int) -> TextDecoder.Output {
      var decoder = TextDecoder(encoding: encoding)
      var output = TextDecoder.Output([], nil)
      var rest = example.file[...]
      repeat {
        let piece = rest.prefix(size)
        rest = rest.dropFirst(size)
        let (text, failure) = decoder.decode(piece, isLast: rest.isEmpty)
        output = (output.text + text, failure)
      } while output.failure == nil && !rest.isEmpty
      return output
    }
    let whole = text(Int.max)
    for size in [1, 2, 3, 7, 1_000] {
      let cut = text(size)
      #expect(cut.text == whole.text && cut.failure?.line == whole.failure?.line, "pieces of \(size)")
      #expect((cut.failure == nil) == (whole.failure == nil), "pieces of \(size)")
    }
  }

  @Test(
    "An encoding that is not known is a usage error, also one that would leave out what it cannot read",
    arguments: ["klingon", "", "utf-8//IGNORE", "latin1//TRANSLIT"])
  func unknownEncoding(_ name: String) {
    #expect(throws: (any Error).self) {
      try ImportCommand.parse(["a.csv", "--entity", "Item", "--encoding", name])
    }
  }
}
