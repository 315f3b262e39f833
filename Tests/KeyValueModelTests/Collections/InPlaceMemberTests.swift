import KeyValueModel
import Testing

@Suite("Members that are made in place")
struct InPlaceMemberTests {
  private var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      """
      entities:
        Node:
          keys:
            children: { toMany: Node, ordered: true, inverse: parent }
            parent: { toOne: Node, inverse: children }
            peers: { toMany: Node, inverse: peers }
      """)
    for name in ["1", "2", "3"] { try fixture.create("Node/\(name)") }
    try fixture.set("Node/1", "children", #"["Node/2","Node/3"]"#)
    try fixture.set("Node/1", "peers", #"["Node/2"]"#)
  }

  private func taker() throws -> [NewMember] {
    [.object(try ref("Node/9"), try body(#"{"children":["Node/2"]}"#))]
  }

  @Test("An object may take members of the collection that it is inserted into")
  mutating func insertion() throws {
    try fixture.commit(.insert(try ref("Node/1"), keyPath: "children", try taker(), at: [0]))
    #expect(try fixture.value("Node/1", "children") == #"["Node/9","Node/3"]"#)
    #expect(try fixture.value("Node/9", "children") == #"["Node/2"]"#)
    #expect(try fixture.value("Node/2", "parent") == #""Node/9""#)
  }

  @Test("A place that is no more once the object has taken its members is out of range")
  mutating func outOfRange() throws {
    let error = try fixture.error([.insert(try ref("Node/1"), keyPath: "children", try taker(), at: [2])])
    #expect(error.code == .indexOutOfRange)
    let replaced = try fixture.error([.replace(try ref("Node/1"), keyPath: "children", at: [1], try taker())])
    #expect(replaced.code == .indexOutOfRange)
  }

  @Test("An object may take members of the collection that it replaces others in")
  mutating func replacement() throws {
    try fixture.commit(.replace(try ref("Node/1"), keyPath: "children", at: [0], try taker()))
    #expect(try fixture.value("Node/1", "children") == #"["Node/9"]"#)
    #expect(try fixture.value("Node/3", "parent") == "null")
    #expect(try fixture.value("Node/2", "parent") == #""Node/9""#)
  }

  @Test("An object of a set operation may name the collection's owner from its side")
  mutating func union() throws {
    let member = NewMember.object(try ref("Node/9"), try body(#"{"peers":["Node/1","Node/3"]}"#))
    try fixture.commit(.mutateSet(try ref("Node/1"), keyPath: "peers", .union, [member]))
    #expect(try fixture.value("Node/1", "peers") == #"["Node/2","Node/9"]"#)
    #expect(try fixture.value("Node/9", "peers") == #"["Node/1","Node/3"]"#)
    #expect(try fixture.value("Node/3", "peers") == #"["Node/9"]"#)
  }

  @Test("An object may name its owner from its side and still be inserted at a place")
  mutating func namesOwner() throws {
    let member = NewMember.object(try ref("Node/9"), try body(#"{"parent":"Node/1"}"#))
    try fixture.commit(.insert(try ref("Node/1"), keyPath: "children", [member], at: [1]))
    #expect(try fixture.value("Node/1", "children") == #"["Node/2","Node/9","Node/3"]"#)
  }
}
