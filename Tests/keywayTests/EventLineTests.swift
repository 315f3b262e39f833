import ArgumentParser
import KeywayClient
import Testing

@testable import keyway

@Suite("Lines of watch, and arguments of set")
struct EventLineTests {
  @Test(
    "an event becomes lines for a person",
    arguments: [
      (
        "change",
        #"{"revision":42,"changes":[{"object":"Account/1","keyPath":"balance","kind":"setting","old":100,"new":120}]}"#,
        ["k-42 Account/1 balance 100 → 120"]
      ),
      (
        "change",
        #"""
        {"writer":"bob","changes":[{"cell":"c1","object":"D/1","keyPath":"e","kind":"insertion","indexes":[0,2],\#
        "new":["E/1","E/2"]},{"object":"D/1","keyPath":"n","kind":"setting","coalesced":3}]}
        """#,
        [#"k-42 c1 D/1 e +[0,2] ["E/1","E/2"] by bob"#, "k-42 D/1 n (setting) (3 changes) by bob"]
      ),
      (
        "change", #"{"changes":[{"object":"A/1","keyPath":"b","kind":"setting","prior":true,"old":null}]}"#,
        ["k-42 A/1 b will change null"]
      ),
      (
        "change",
        #"""
        {"changes":[{"object":"D/1","keyPath":"e","kind":"removal","prior":true,"indexes":[1],"old":["E/1"]},\#
        {"object":"D/1","keyPath":"e","kind":"replacement","indexes":[1],"old":["E/1"],"new":["E/2"]},\#
        {"object":"D/1","keyPath":"s","kind":"insertion","new":["a"]},\#
        {"object":"D/1","keyPath":"s","kind":"removal"}]}
        """#,
        [
          #"k-42 D/1 e will change -[1] ["E/1"]"#, #"k-42 D/1 e replaced[1] ["E/1"] → ["E/2"]"#, #"k-42 D/1 s + ["a"]"#,
          "k-42 D/1 s - (removal)",
        ]
      ),
      ("gone", #"{"revision":42,"object":"Account/1"}"#, ["k-42 Account/1 gone"]),
      ("bye", #"{"reason":"shutdown"}"#, ["k-42 bye: shutdown"]),
      ("results", #"{"count":2,"total":2,"objects":[{"@ref":"E/1"},{"@ref":"E/2"}]}"#, ["k-42 2 objects: E/1 E/2"]),
      (
        "content",
        #"""
        {"changes":[{"type":"move","object":"E/5","index":2,"newIndex":0},\#
        {"type":"delete","object":"E/3","index":4,"reason":"left"}]}
        """#,
        ["k-42 move E/5 2 → 0", "k-42 delete E/3 4 (left)"]
      ),
      (
        "results",
        #"""
        {"count":3,"total":3,"objects":[{"@ref":"E/1"},{"@ref":"E/2"},{"@ref":"E/3"}],\#
        "sections":[{"name":"CA","count":1},{"name":null,"count":2}]}
        """#,
        ["k-42 3 objects in 2 sections", "k-42 CA (1): E/1", "k-42 null (2): E/2 E/3"]
      ),
      (
        "content",
        #"""
        {"changes":[{"type":"insert","object":"E/5","newIndex":[1,0],"reason":"created"},\#
        {"type":"update","object":"E/6","index":[0,1],"newIndex":[0,0],"keys":["name"],"value":{"name":"x"}}],\#
        "sectionChanges":[{"type":"insert","name":"TX","newIndex":1},{"type":"delete","name":"CA","index":0}]}
        """#,
        [
          "k-42 insert section TX 1", "k-42 delete section CA 0", "k-42 insert E/5 [1,0] (created)",
          #"k-42 update E/6 [0,1] → [0,0] name "x""#,
        ]
      ),
      ("other", "no json", ["k-42 other no json"]),
    ])
  func lines(event: String, data: String, expected: [String]) {
    #expect(EventLine.lines(ServerSentEvent(id: "k-42", event: event, data: data)) == expected)
  }

  @Test("an event becomes one line of JSON, whatever its data is")
  func json() {
    let event = ServerSentEvent(id: "k-1", event: "gone", data: "{\"revision\": 1}")
    #expect(EventLine.json(event) == #"{"event":"gone","id":"k-1","data":{"revision":1}}"#)
    let text = ServerSentEvent(id: "", event: "message", data: "a\nb")
    #expect(EventLine.json(text) == #"{"event":"message","id":"","data":"a\nb"}"#)
  }

  @Test(
    "a value that is no JSON is taken as a string",
    arguments: [("120", "120"), ("true", "true"), ("[1]", "[1]"), ("Byron", "\"Byron\""), ("", "\"\""), ("-5", "-5")])
  func body(text: String, expected: String) throws {
    #expect(String(decoding: try SetCommand.body(text), as: UTF8.self) == expected)
  }

  @Test(
    "an entity tag gets its quotation marks back",
    arguments: [("k-1", "\"k-1\""), ("\"k-1\"", "\"k-1\""), ("*", "*"), ("W/\"k-1\"", "W/\"k-1\"")])
  func entityTag(text: String, expected: String) {
    #expect(ConditionOptions.entityTag(text) == expected)
  }

  @Test(
    "only streams of one object have options and end with it",
    arguments: [
      (["Account/1"], "/v1/objects/Account/1?options=initial,old,new"),
      (
        ["Account/1", "balance,owner.fullName", "--options", "old,new"],
        "/v1/objects/Account/1/balance,owner.fullName?options=old,new"
      ),
      (["Account/1", "--context", "a b"], "/v1/objects/Account/1?options=initial,old,new&context=a%20b"),
      (["Employee?filter=a/b"], "/v1/objects/Employee?filter=a/b"), (["/v1/streams"], "/v1/streams"),
      (
        [
          "Airport", "--filter", "state == 'TX' && name != \"a+b\"", "--sort", "city,-name", "--limit", "20",
          "--section", "state", "--keys", "city,name",
        ],
        """
        /v1/objects/Airport?filter=state%20%3D%3D%20'TX'%20%26%26%20name%20!%3D%20%22a%2Bb%22&sort=city,-name&\
        limit=20&section=state&keys=city,name
        """
      ),
      (["Airport?sort=city", "--limit", "5"], "/v1/objects/Airport?sort=city&limit=5"),
    ])
  func watchPath(arguments: [String], expected: String) throws {
    let command = try WatchCommand.parse(arguments)
    #expect(command.path == expected)
    #expect(command.isOfOneObject == expected.contains("options="))
  }

  @Test(
    "the options of a live query are refused for anything but an entity",
    arguments: [
      ["Account/1", "--filter", "true"], ["Account/1", "balance", "--limit", "5"], ["/v1/streams", "--sort", "a"],
      ["Airport", "name", "--section", "state"], ["Airport", "--limit=-1"],
    ])
  func queryOptions(arguments: [String]) {
    #expect(throws: (any Error).self) { try WatchCommand.parse(arguments) }
  }
}
