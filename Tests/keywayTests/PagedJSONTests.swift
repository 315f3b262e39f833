import ArgumentParser
import KeyValueModel
import KeywayClient
import TestKit
import Testing

@testable import keyway

@Suite("The pages of a fetch") struct PagedJSONTests {
  private static func page(_ objects: [Value], next: Bool, count: Int, sections: Bool) throws -> FetchPage {
    var body: JSONObject = [
      "revision": .integer(7), "count": .integer(Int64(count)), "total": .integer(Int64(count)),
      "objects": .array(objects),
    ]
    if sections { body["sections"] = .array([.object(["name": .null, "count": .integer(Int64(count))])]) }
    if next { body["next"] = .string("word.\(objects.count)") }
    let json = Array(Value.object(body).json.utf8)
    return try #require(FetchPage(ClientResponse(status: 200, body: json)))
  }

  @Test("however objects are cut into pages, the text is that of one page with all of them")
  func whole() throws {
    var random = SplitMix64(seed: seed)
    for round in 0..<200 {
      let objects = (0..<Int.random(in: 0...12, using: &random)).map { index in
        Value.object(["@ref": .string("Note/\(index)"), "text": .string("t\u{1F600}\"\(index)")])
      }
      let sections = Bool.random(using: &random)
      var rest = objects[...]
      var output = PagedJSON()
      var text = ""
      repeat {
        let size = Int.random(in: 0...4, using: &random)
        let part = Array(rest.prefix(size))
        rest = rest.dropFirst(size)
        text += output.text(
          for: try Self.page(part, next: !rest.isEmpty, count: objects.count, sections: sections))
      } while !rest.isEmpty
      var all = PagedJSON()
      let expected = all.text(for: try Self.page(objects, next: false, count: objects.count, sections: sections))
      #expect(text == expected, "seed \(seed), round \(round)")
      #expect(try Value(json: text).asObject?["objects"]?.asArray == objects, "seed \(seed), round \(round)")
    }
  }

  @Test("columns are those of the first objects, and what is left out is said")
  func columns() {
    let objects: [Value] = [
      .object(["@ref": .string("Note/1"), "@revision": .integer(4), "text": .string("a\u{1B}[2J"), "size": .integer(5)]
      ),
      .object(["@ref": .string("Note/20"), "text": .null, "size": .integer(12)]),
    ]
    let columns = ObjectColumns(for: objects, columns: 80)
    #expect(columns.heading.text == "@ref     text   size")
    #expect(columns.lines(for: objects).map(\.text) == ["Note/1   a␛[2J     5", "Note/20  null     12"])
    #expect(columns.remark(shown: 2, of: 2) == nil)
    #expect(columns.remark(shown: 2, of: 3376)?.text == "… 2 of 3,376 objects")
    let narrow = ObjectColumns(for: objects, columns: 12)
    #expect(narrow.hiddenCount > 0)
    #expect(narrow.remark(shown: 2, of: nil)?.text.contains("hidden; --keys") == true)
    #expect(narrow.lines(for: objects).allSatisfy { TerminalText.width($0.text) <= 12 })
  }

  @Test(
    "get wants all pages of an entity, unless it is asked for some",
    arguments: [
      (["Airport"], true), (["Airport", "--sort", "-city"], true), (["Airport", "--limit", "5"], false),
      (["Airport?limit=5"], false), (["Airport?filter=true&page=w.1"], false), (["Airport/ABI"], false),
      (["/v1/status"], false), (["/v1/objects/Airport"], true),
    ])
  func pages(_ arguments: [String], _ wantsAll: Bool) throws {
    #expect(try GetCommand.parse(arguments).wantsAllPages == wantsAll)
  }
}
