import Support
import Testing

@testable import KeyValueModel

@Suite("Transactions as a feed tells them")
struct FeedTextTests {
  @Test(
    "Each operation is told in exactly this form",
    arguments: [
      (#"["create","A/1",{"b":1,"c":1.0}]"#, #"{"op":"create","object":"A/1","value":{"b":1,"c":1.0}}"#),
      (#"["lifetime","A/1",60]"#, #"{"op":"lifetime","object":"A/1","lifetime":60}"#),
      (#"["lifetime","A/1","stream=7"]"#, #"{"op":"lifetime","object":"A/1","lifetime":"stream"}"#),
      (#"["put","A/1",{}]"#, #"{"op":"put","object":"A/1","value":{}}"#),
      (#"["set","A/1","b.c",-0.0]"#, #"{"op":"set","object":"A/1","keyPath":"b.c","value":-0.0}"#),
      (
        #"["set","A/1","b",{"@@reference":"B/1"}]"#, #"{"op":"set","object":"A/1","keyPath":"b","value":"B/1"}"#
      ),
      (
        #"["set","A/1","b",{"@@object":{"@@object":{"@@object":{"@@members":[true,[1]]}}}}]"#,
        #"{"op":"set","object":"A/1","keyPath":"b","value":{"@@object":{"@@members":[true,[1]]}}}"#
      ),
      (
        #"["set","A/1","b",{"@@members":[true,[1,{"@@number":"inf"}]]}]"#,
        #"{"op":"set","object":"A/1","keyPath":"b","value":[1,null]}"#
      ),
      (#"["patch","A/1",{"b":null}]"#, #"{"op":"patch","object":"A/1","value":{"b":null}}"#),
      (
        #"["jsonPatch","A/1",[["add","/a~1b","x"],["remove","/a"],["replace","/a",1],["move","/a","/b"],"#
          + #"["copy","/a","/-"],["test","/a",1.0]]]"#,
        #"{"op":"patch","object":"A/1","patch":[{"op":"add","path":"/a~1b","value":"x"},{"op":"remove","path":"/a"},"#
          + #"{"op":"replace","path":"/a","value":1},{"op":"move","from":"/a","path":"/b"},"#
          + #"{"op":"copy","from":"/a","path":"/-"},{"op":"test","path":"/a","value":1.0}]}"#
      ),
      (
        #"["insert","A/1","b",["B/1",{"@@made":["B/2",{"c":1,"@ref":"B/2"}]}],null]"#,
        #"{"op":"insert","object":"A/1","keyPath":"b","value":["B/1",{"@ref":"B/2","c":1}]}"#
      ),
      (
        #"["insert","A/1","b",["B/1"],[0]]"#,
        #"{"op":"insert","object":"A/1","keyPath":"b","value":["B/1"],"index":[0]}"#
      ),
      (#"["removeIndexes","A/1","b",[2,0]]"#, #"{"op":"remove","object":"A/1","keyPath":"b","index":[2,0]}"#),
      (#"["removeMembers","A/1","b",["B/1"]]"#, #"{"op":"remove","object":"A/1","keyPath":"b","value":["B/1"]}"#),
      (
        #"["replace","A/1","b",[0],["B/1"]]"#,
        #"{"op":"replace","object":"A/1","keyPath":"b","index":[0],"value":["B/1"]}"#
      ),
      (
        #"["mutateSet","A/1","b","minus",["B/1"]]"#,
        #"{"op":"mutateSet","object":"A/1","keyPath":"b","operation":"minus","value":["B/1"]}"#
      ),
      (#"["delete","A/1"]"#, #"{"op":"delete","object":"A/1"}"#),
      (#"["willChange","A/1","b"]"#, #"{"op":"willChange","object":"A/1","key":"b"}"#),
      (#"["didChange","A/1","b"]"#, #"{"op":"didChange","object":"A/1","key":"b"}"#),
      (#"["require","A/1",7]"#, #"{"op":"require","object":"A/1","revision":7}"#),
    ])
  func exactText(operation: String, told: String) throws {
    let transaction = try Transaction(journalText: Array("[\"me\",[\(operation)]]".utf8))
    var bytes: [UInt8] = []
    transaction.appendFeedText(revision: 12, milliseconds: 1_700_000_000_005, to: &bytes)
    let head = #"{"revision":12,"time":"2023-11-14T22:13:20.005Z","writer":"me","operations":["#
    #expect(String(decoding: bytes, as: UTF8.self) == head + told + "]}")
  }

  @Test("A transaction that nobody signed has no writer")
  func unsigned() throws {
    var bytes: [UInt8] = []
    Transaction([]).appendFeedText(revision: 1, milliseconds: -1, to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self) == #"{"revision":1,"time":"1969-12-31T23:59:59.999Z","operations":[]}"#)
  }

  @Test(
    "Times that RFC 3339 has no text for are the first or the last that it has",
    arguments: [
      (Int64.min, "0000-01-01T00:00:00.000Z"), (0, "1970-01-01T00:00:00.000Z"),
      (-62_167_219_199_999, "0000-01-01T00:00:00.001Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"), (Int64.max, "9999-12-31T23:59:59.999Z"),
    ])
  func times(milliseconds: Int64, text: String) {
    #expect(RFC3339.dateTime(milliseconds: milliseconds) == text)
  }
}
