import KeyValueModel
import Testing

@Suite("Objects that are made as members")
struct ObjectsInPlaceTests {
  static let schema = """
    entities:
      Order:
        keys:
          lines: {toMany: Line, ordered: true, inverse: order}
          notes: {toMany: Note}
          labels: {toMany: string}
      Line:
        keys:
          text: {type: string, optional: false}
          order: {toOne: Order, inverse: lines, optional: false}
          parts: {toMany: Note, inverse: line}
      BigLine: {extends: Line, keys: {weight: {type: integer, default: 7}}}
      Note: {keys: {line: {toOne: Line, inverse: parts}}}
      Node: {keys: {parent: {toOne: Node, inverse: children}, children: {toMany: Node, ordered: true, inverse: parent}}}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    try fixture.create("Order/1")
    try fixture.create("Order/2")
  }

  @Test("A required inverse is given by the collection, and subclasses may be made too")
  mutating func requiredInverse() throws {
    let commit = try fixture.commit(
      .insert(#"[{"@ref":"Line/1","text":"a"},{"@ref":"BigLine/1","text":"b"}]"#, into: "Order/1.lines"),
      .insert(#"[{"@ref":"Line/2","text":"c"}]"#, into: "Order/1.lines", at: [1]))
    #expect(try fixture.value("Order/1", "lines") == #"["Line/1","Line/2","BigLine/1"]"#)
    #expect(try (fixture.value("BigLine/1", "order"), fixture.value("BigLine/1", "weight")) == (#""Order/1""#, "7"))
    #expect(commit.results.map(\.text) == ["Order/1", "Order/1"])
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("Replacing takes new objects as well, and a member that needs its place cannot lose it")
  mutating func replacing() throws {
    try fixture.commit(.insert(#"[{"@ref":"Line/1","text":"a"}]"#, into: "Order/1.lines"))
    let error = try fixture.error([.replace([0], of: "Order/1.lines", with: #"[{"@ref":"Line/2","text":"b"}]"#)])
    #expect((error.code, error.object, error.keyPath) == (.nullNotAllowed, "Line/1", "order"))
    #expect(try fixture.error([.set("Order/1.lines", to: "[]")]).code == .nullNotAllowed)
    #expect(try fixture.error([.remove([0], from: "Order/1.lines")]).code == .nullNotAllowed)
    // Another order may take over the line.
    try fixture.commit(.insert(#"["Line/1"]"#, into: "Order/2.lines"))
    #expect(try (fixture.value("Order/1", "lines"), fixture.value("Line/1", "order")) == ("[]", #""Order/2""#))
  }

  @Test("A body may name its holder, or another one that then loses it")
  mutating func namedHolder() throws {
    try fixture.commit(
      .insert(
        #"[{"@ref":"Line/1","text":"a","order":"Order/1"},{"@ref":"Line/2","text":"b","order":"Order/2"}]"#,
        into: "Order/1.lines"))
    #expect(
      try (fixture.value("Order/1", "lines"), fixture.value("Order/2", "lines")) == (#"["Line/1","Line/2"]"#, "[]"))
    let commit = try fixture.commit(
      .insert(#"[{"@ref":"Line/3","text":"c","order":"Order/1"}]"#, into: "Order/1.lines", at: [0]))
    #expect(try fixture.value("Order/1", "lines") == #"["Line/3","Line/1","Line/2"]"#)
    #expect(try fixture.changes(commit).filter { $0.hasPrefix("Order") } == ["Order/1.lines insertion [0] + Line/3"])
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test("A body may take members away from the collection that the object comes into")
  mutating func takingAway() throws {
    for id in 1...4 { try fixture.create("Node/\(id)") }
    try fixture.set("Node/1", "children", #"["Node/2","Node/3","Node/4"]"#)
    try fixture.commit(
      .insert(#"[{"@ref":"Node/5","children":["Node/3","Node/2"]}]"#, into: "Node/1.children", at: [0]))
    #expect(try fixture.value("Node/1", "children") == #"["Node/5","Node/4"]"#)
    #expect(try fixture.value("Node/5", "children") == #"["Node/3","Node/2"]"#)
    #expect(inconsistencies(in: fixture.model.state) == [])
    try fixture.commit(
      .replace([0], of: "Node/1.children", with: #"[{"@ref":"Node/6","children":["Node/5","Node/6"]}]"#))
    #expect(try fixture.value("Node/1", "children") == #"["Node/6"]"#)
    #expect(try fixture.value("Node/6", "children") == #"["Node/5"]"#)
    #expect(inconsistencies(in: fixture.model.state) == [])
    let error = try fixture.error([
      .replace([0], of: "Node/1.children", with: #"[{"@ref":"Node/7","children":["Node/6"]}]"#)
    ])
    #expect(error.code == .indexOutOfRange, "there is no member left to be replaced")
  }

  @Test("Without an inverse, and in a set, objects are made as well")
  mutating func plain() throws {
    try fixture.commit(
      .insert(#"[{"@ref":"Note/2"},{"@ref":"Note/1"}]"#, into: "Order/1.notes"),
      .mutate("Order/1.notes", .union, #"["Note/1",{"@ref":"Note/3"}]"#))
    #expect(try fixture.value("Order/1", "notes") == #"["Note/1","Note/2","Note/3"]"#)
    #expect(inconsistencies(in: fixture.model.state) == [])
  }

  @Test(
    "A body with a mistake makes nothing at all",
    arguments: [
      ("lines", #"{"@ref":"Line/1"}"#, ModelError.Code.nullNotAllowed),
      ("lines", #"{"@ref":"Line/1","text":null}"#, .nullNotAllowed),
      ("lines", #"{"@ref":"Line/1","text":"a","order":null}"#, .nullNotAllowed),
      ("lines", #"{"@ref":"Line/1","text":7}"#, .invalidValue),
      ("lines", #"{"@ref":"Line/1","nope":7}"#, .invalidValue),
      ("lines", #"{"@ref":"Order/9","lines":[]}"#, .wrongEntity), ("lines", #"{"@ref":"Nobody/9"}"#, .wrongEntity),
      ("notes", #"{"@ref":"Note/1"},{"@ref":"Note/1"}"#, .alreadyExists),
      ("labels", #"{"@ref":"Note/1"}"#, .invalidValue),
    ])
  mutating func mistakes(key: String, bodies: String, code: ModelError.Code) throws {
    let error = try fixture.error([
      .insert(#"[{"@ref":"Note/7"}]"#, into: "Order/1.notes"), .insert("[\(bodies)]", into: "Order/1.\(key)"),
    ])
    #expect((error.code, error.operation) == (code, 1), "\(error)")
    #expect(try !fixture.exists("Line/1"))
    #expect(inconsistencies(in: fixture.model.state) == [])
  }
}
