import KeyValueModel
import OrderedCollections
import TestKit
import Testing

@testable import KeywayClient

@Suite("A live list") struct LiveListTests {
  @Test("applying a content to the list before it gives the list after it", arguments: [nil, ["CA", "NM", "TX"]])
  func applying(names: [String]?) throws {
    var random = SplitMix64(seed: seed)
    for objects in [1, 2, 3, 5, 8, 20] {
      for _ in 0..<60 {
        var before = NaiveList.random(objects: objects, names: names, using: &random)
        var list = LiveList()
        try list.apply(event("results", before.results(revision: 1)))
        #expect(naive(list) == before, "seed \(seed)")
        for revision in 2..<8 {
          let after = NaiveList.random(objects: objects, names: names, using: &random)
          let content = before.content(to: after, revision: revision, using: &random)
          try list.apply(event("content", content))
          #expect(naive(list) == after, "seed \(seed): \(content.json)")
          #expect(list.revision == Int64(revision))
          checkSections(list, isSectioned: names != nil)
          before = after
        }
      }
    }
  }

  @Test("a content with a mistake in it is refused and changes nothing, or is a consistent other one")
  func mistakes() throws {
    var random = SplitMix64(seed: seed)
    var refused = 0
    for round in 0..<3000 {
      let names = round.isMultiple(of: 2) ? nil : ["CA", "NM", "TX"]
      let before = NaiveList.random(objects: 6, names: names, using: &random)
      let after = NaiveList.random(objects: 6, names: names, using: &random)
      var list = LiveList()
      try list.replace(results: before.results(revision: 1))
      let untouched = list
      let content = mistaken(before.content(to: after, revision: 2, using: &random), using: &random)
      do {
        try list.apply(event("content", content))
        #expect(Set(list.rows.map(\.reference)) == list.references, "seed \(seed): \(content.json)")
        #expect(list.rows.count == list.count, "seed \(seed): \(content.json)")
        #expect(names == nil || list.sections.allSatisfy { !$0.rows.isEmpty }, "seed \(seed): \(content.json)")
      } catch {
        refused += 1
        #expect(list == untouched, "seed \(seed): \(content.json)")
      }
    }
    #expect(refused > 1000)
  }

  static let contradictions: [(content: String, error: String)] = [
    (#"[]"#, "content must be an object, and is []"),
    (#"{"count":3,"total":9,"changes":[]}"#, "content, revision must be a whole number, and is missing"),
    (#"{"revision":4,"count":3,"total":9,"changes":[]}"#, "content 4 is older than the list, which is at revision 5"),
    (#"{"revision":6,"count":2,"total":9,"changes":[]}"#, "content 6 states 2 rows, but there are 3"),
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":3}]}"#,
      "content 6, changes[0] names row 3 of 3"
    ),
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":1}]}"#,
      "content 6, changes[0] names A/1 at 1, where A/2 is"
    ),
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":-1}]}"#,
      "content 6, changes[0], index must be an index, and is -1"
    ),
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":[0,0]}]}"#,
      "content 6, changes[0], index must be an index, and is [0,0]"
    ),
    (
      #"{"revision":6,"count":4,"total":9,"changes":[{"type":"insert","object":"A/1","newIndex":0,"value":{}}]}"#,
      "content 6, changes[0] inserts A/1, which is in the list already"
    ),
    (
      #"{"revision":6,"count":4,"total":9,"changes":[{"type":"insert","object":"A/4","newIndex":4,"value":{}}]}"#,
      "content 6 names row 4 of 4"
    ),
    (
      #"{"revision":6,"count":4,"total":9,"changes":[{"type":"insert","object":"A/4","newIndex":0}]}"#,
      "content 6, changes[0], value must be an object, and is null"
    ),
    (
      #"""
      {"revision":6,"count":4,"total":9,"changes":[{"type":"insert","object":"A/4","newIndex":0,\#
      "value":{"@ref":"A/5"}}]}
      """#,
      #"content 6, changes[0], value.@ref must be A/4, and is "A/5""#
    ),
    (
      #"""
      {"revision":6,"count":5,"total":9,"changes":[{"type":"insert","object":"A/4","newIndex":0,"value":{}},\#
      {"type":"insert","object":"A/5","newIndex":0,"value":{}}]}
      """#,
      "content 6, changes[1] places a second row at 0"
    ),
    (
      #"""
      {"revision":6,"count":3,"total":9,"changes":[{"type":"update","object":"A/1","index":0,"newIndex":1,\#
      "value":{}}]}
      """#,
      "content 6, changes[0] names A/1 at 1, where A/2 is"
    ),
    (
      #"""
      {"revision":6,"count":3,"total":9,"changes":[{"type":"update","object":"A/1","index":0,"newIndex":0,\#
      "value":{}},{"type":"delete","object":"A/1","index":0}]}
      """#,
      "content 6, changes[1] names A/1 a second time"
    ),
    (
      #"{"revision":6,"count":3,"total":9,"changes":[{"type":"turn","object":"A/1","index":0}]}"#,
      #"content 6, changes[0], type must be insert, delete, move or update, and is "turn""#
    ),
    (
      #"{"revision":6,"count":3,"total":9,"changes":[{"type":"delete","object":"one","index":0}]}"#,
      #"content 6, changes[0], object must be a reference, and is "one""#
    ),
  ]

  @Test("totals, failures and aggregates are those of the last event")
  func summaries() throws {
    var list = LiveList()
    try list.apply(
      ServerSentEvent(
        id: "", event: "results",
        data: #"{"revision":1,"count":1,"total":2,"failed":1,"objects":[{"@ref":"A/1"}],"aggregates":{"@count":2}}"#))
    #expect((list.count, list.total, list.failed) == (1, 2, 1))
    #expect(list.aggregates == ["@count": .integer(2)])
    try list.apply(
      ServerSentEvent(
        id: "", event: "content",
        data: #"{"revision":2,"count":1,"total":3,"changes":[],"aggregates":{"@count":3}}"#))
    #expect((list.count, list.total, list.failed) == (1, 3, 0))
    #expect(list.aggregates == ["@count": .integer(3)])
    check(
      &list, "content", #"{"revision":3,"count":1,"total":0,"changes":[]}"#,
      throws: "content 3, total must be 1 or more, and is 0")
  }

  @Test("the aggregates of sections are those of the last event, which must know the sections")
  func sectionSummaries() throws {
    var list = LiveList()
    let results = #"""
      {"revision":1,"count":2,"total":2,"objects":[{"@ref":"A/1"},{"@ref":"A/2"}],
       "sections":[{"name":"CA","count":1,"aggregates":{"@sum.size":4}},
                   {"name":"TX","count":1,"aggregates":{"@sum.size":6}}]}
      """#
    try list.apply(ServerSentEvent(id: "", event: "results", data: results))
    #expect(list.sections.map(\.aggregates) == [["@sum.size": .integer(4)], ["@sum.size": .integer(6)]])
    func content(_ sections: String) -> String {
      #"{"revision":2,"count":2,"total":2,"changes":[],"sections":["# + sections + "]}"
    }
    let first = #"{"name":"CA","count":1,"aggregates":{"@sum.size":5}}"#
    check(&list, "content", content(first), throws: "content 2 names section 1 of 2")
    check(
      &list, "content", content(first + #",{"name":"NM","count":1}"#),
      throws: #"content 2 names section "NM" at 1, where "TX" is"#)
    check(
      &list, "content", content(first + #",{"name":"TX","count":2}"#),
      throws: "content 2, sections[1] states 2 rows, but there are 1")
    let whole = content(first + #",{"name":"TX","count":1,"aggregates":{"@sum.size":6}}"#)
    try list.apply(ServerSentEvent(id: "", event: "content", data: whole))
    #expect(list.sections.map(\.aggregates) == [["@sum.size": .integer(5)], ["@sum.size": .integer(6)]])
  }

  @Test("a content that contradicts the list says what and where", arguments: contradictions)
  func contradiction(content: String, error: String) throws {
    var list = LiveList()
    let results = #"{"revision":5,"count":3,"total":9,"objects":[{"@ref":"A/1"},{"@ref":"A/2"},{"@ref":"A/3"}]}"#
    try list.apply(ServerSentEvent(id: "", event: "results", data: results))
    check(&list, "content", content, throws: error)
  }

  static let sectionContradictions: [(content: String, error: String)] = [
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":[0,0]}]}"#,
      #"content 6: section "CA" at 0 has 0 rows"#
    ),
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":0}]}"#,
      "content 6, changes[0], index must be [section,row], and is 0"
    ),
    (
      #"{"revision":6,"count":2,"total":9,"changes":[{"type":"delete","object":"A/1","index":[2,0]}]}"#,
      "content 6, changes[0] names section 2 of 2"
    ),
    (
      #"{"revision":6,"count":3,"total":9,"changes":[],"sectionChanges":[{"type":"delete","name":"CA","index":0}]}"#,
      #"content 6, sectionChanges: section "CA" at 0 has 1 rows"#
    ),
    (
      #"{"revision":6,"count":3,"total":9,"changes":[],"sectionChanges":[{"type":"delete","name":"TX","index":0}]}"#,
      #"content 6, sectionChanges names section "TX" at 0, where "CA" is"#
    ),
    (
      #"{"revision":6,"count":3,"total":9,"changes":[],"sectionChanges":[{"type":"insert","name":"NM","newIndex":3}]}"#,
      "content 6, sectionChanges names section 3 of 2"
    ),
    (
      #"{"revision":6,"count":3,"total":9,"changes":[],"sectionChanges":[{"type":"insert","name":"NM","newIndex":1}]}"#,
      #"content 6: section "NM" at 1 has 0 rows"#
    ),
    (
      #"""
      {"revision":6,"count":3,"total":9,"changes":[],"sectionChanges":[{"type":"insert","name":"NM","newIndex":1},\#
      {"type":"insert","name":"NV","newIndex":1}]}
      """#,
      "content 6, sectionChanges names section 1 a second time"
    ),
  ]

  @Test("so does one that contradicts the sections", arguments: sectionContradictions)
  func sectionContradiction(content: String, error: String) throws {
    var list = LiveList()
    let results =
      #"""
      {"revision":5,"count":3,"total":9,"objects":[{"@ref":"A/1"},{"@ref":"A/2"},{"@ref":"A/3"}],\#
      "sections":[{"name":"CA","count":1},{"name":"TX","count":2}]}
      """#
    try list.apply(ServerSentEvent(id: "", event: "results", data: results))
    check(&list, "content", content, throws: error)
  }

  @Test(
    "results that contradict themselves are refused",
    arguments: [
      (
        #"{"revision":1,"count":2,"total":9,"objects":[{"@ref":"A/1"}]}"#,
        "results 1 states 2 rows, but there are 1"
      ),
      (
        #"{"revision":1,"count":2,"total":9,"objects":[{"@ref":"A/1"},{"@ref":"A/1"}]}"#,
        "results 1, objects[1] names A/1 a second time"
      ),
      (
        #"{"revision":1,"count":1,"total":9,"objects":[{"@ref":"A/1"}],"sections":[]}"#,
        "results 1, sections states 0 rows, but there are 1"
      ),
      (
        #"{"revision":1,"count":1,"total":9,"objects":[{"@ref":"A/1"}],"sections":[{"name":null,"count":2}]}"#,
        "results 1, sections[0] states 2 rows, but there are 1"
      ),
      (#"{"revision":1,"#, "results must be JSON, and is "),
    ])
  func results(data: String, error: String) {
    var list = LiveList()
    check(&list, "results", data, throws: error)
  }

  @Test("reset is followed by results, and nothing is applied in between")
  func reset() throws {
    var list = LiveList()
    let content = #"{"revision":2,"count":0,"total":9,"changes":[]}"#
    check(&list, "content", content, throws: "content 2 came before the results that it changes")
    try list.apply(event("results", NaiveList(sections: [.init(name: nil, rows: [])]).results(revision: 1)))
    try list.apply(ServerSentEvent(id: "", event: "heartbeat", data: "{}"))
    try list.apply(ServerSentEvent(id: "", event: "content", data: content))
    try list.apply(ServerSentEvent(id: "", event: "reset", data: #"{"reason":"epoch","revision":1}"#))
    #expect(!list.isCurrent)
    check(&list, "content", content, throws: "content 2 came before the results that it changes")
    try list.apply(event("results", NaiveList(sections: [.init(name: nil, rows: [])]).results(revision: 1)))
    #expect(list.isCurrent && list.revision == 1)
  }

  // MARK: Helpers

  private func check(_ list: inout LiveList, _ name: String, _ data: String, throws error: String) {
    let before = list
    let thrown = #expect(throws: LiveListError.self) {
      try list.apply(ServerSentEvent(id: "", event: name, data: data))
    }
    #expect(thrown?.description.hasPrefix(error) == true, "\(thrown?.description ?? "nothing")")
    #expect(list == before)
  }

  private func event(_ name: String, _ data: Value) -> ServerSentEvent {
    ServerSentEvent(id: "k-1", event: name, data: data.json)
  }

  private func naive(_ list: LiveList) -> NaiveList {
    NaiveList(
      sections: list.sections.map { section in
        NaiveList.Section(
          name: section.name,
          rows: section.rows.map { NaiveList.Row(reference: $0.reference.text, value: .object($0.value)) })
      })
  }

  private func checkSections(_ list: LiveList, isSectioned: Bool) {
    #expect(list.rows.count == list.count && list.isSectioned == isSectioned)
    #expect(list.sections.allSatisfy { ($0.name != nil) == isSectioned && $0.count == $0.rows.count })
    #expect(isSectioned || list.sections.count == 1)
  }

  /// Returns the content with one number, name or member changed.
  private func mistaken(_ content: Value, using random: inout SplitMix64) -> Value {
    switch content {
    case .integer(let number): return .integer(number &+ ([-1, 1, 1 << 40].randomElement(using: &random) ?? 1))
    case .string:
      return .string(["A/0", "A/1", "A/9", "TX", "move", "delete"].randomElement(using: &random) ?? "")
    case .array(var elements):
      guard let index = elements.indices.randomElement(using: &random) else { return .array([.null]) }
      switch Int.random(in: 0..<6, using: &random) {
      case 0: elements.remove(at: index)
      case 1: elements.append(elements[index])
      default: elements[index] = mistaken(elements[index], using: &random)
      }
      return .array(elements)
    case .object(var object):
      guard let name = object.members.keys.randomElement(using: &random), let value = object[name] else { return .null }
      object[name] = Int.random(in: 0..<8, using: &random) == 0 ? nil : mistaken(value, using: &random)
      return .object(object)
    default: return .null
    }
  }
}
