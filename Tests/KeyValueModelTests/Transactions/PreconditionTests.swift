import KeyValueModel
import Testing

@Suite("Preconditions, requirements and brackets")
struct PreconditionTests {
  static let schema = """
    entities:
      A: {keys: {x: {type: integer}, b: {toOne: B}, by: {computed: b.y}}}
      B: {keys: {y: {type: integer}}}
      C: {keys: {b: {toOne: B}}}
    """

  var fixture: Fixture

  /// Revisions: B/1 at 1, A/1 at 2, C/1 at 3, B/1.y at 4, C/2 at 5.
  init() throws {
    fixture = try Fixture(Self.schema)
    try fixture.create("B/1")
    try fixture.create("A/1", #"{"b":"B/1"}"#)
    try fixture.create("C/1", #"{"b":"B/1"}"#)
    try fixture.set("B/1", "y", "1")
    try fixture.create("C/2")
  }

  private mutating func holds(_ precondition: Precondition) throws -> Bool {
    let before = fixture.portrait
    do throws(ModelError) {
      var copy = fixture.model
      _ = try copy.commit(Transaction([], preconditions: [precondition]))
      return true
    } catch {
      #expect(error.code == .staleRevision)
      #expect(fixture.portrait == before)
      return false
    }
  }

  @Test("An unchanged object counts what its computed keys read, and a newer cursor is as good as its ETag")
  mutating func unchangedObject() throws {
    for (name, latest) in [("A/1", 4), ("B/1", 4), ("C/1", 3)] as [(String, Revision)] {
      for since in 0...7 as ClosedRange<Revision> {
        // No client can have received a revision from the future.
        let expected = since >= latest && since <= 5
        #expect(try holds(.unchangedObject(try ref(name), since: since)) == expected, "\(name) \(since)")
      }
    }
  }

  @Test("A missing object is unknown rather than changed")
  mutating func absence() throws {
    let preconditions: [Precondition] = [
      .unchangedObject(try ref("A/9"), since: 5), .unchangedKeyPath(try ref("A/9"), "x", since: 5),
    ]
    for precondition in preconditions {
      let error = #expect(throws: ModelError.self) {
        try fixture.model.commit(Transaction([], preconditions: [precondition]))
      }
      #expect(error?.code == .unknownObject)
    }
  }

  @Test("Differing holds unless the object, or what the key path reads, is as it was at one of the revisions")
  mutating func differs() throws {
    #expect(try holds(.differs(try ref("A/1"), keyPath: nil, from: [3, 5])))
    #expect(try !holds(.differs(try ref("A/1"), keyPath: nil, from: [3, 4])))
    #expect(try !holds(.differs(try ref("A/1"), keyPath: "x", from: [2])))
    #expect(try holds(.differs(try ref("A/1"), keyPath: "x", from: [4])))
    #expect(try holds(.differs(try ref("A/9"), keyPath: nil, from: [1])))
  }

  @Test("An unchanged key path counts the objects along it")
  mutating func unchangedKeyPath() throws {
    for (name, path, latest) in [
      ("A/1", "x", 2), ("A/1", "b.y", 4), ("A/1", "by", 4), ("C/1", "b", 3), ("C/2", "b.y", 5),
    ]
      as [(String, String, Revision)]
    {
      for since in 0...7 as ClosedRange<Revision> {
        let expected = since >= latest && since <= 5
        #expect(try holds(.unchangedKeyPath(try ref(name), path, since: since)) == expected, "\(path) \(since)")
      }
    }
  }

  @Test("Being there and not being there are preconditions")
  mutating func presence() throws {
    #expect(try holds(.exists(try ref("A/1"))))
    #expect(try !holds(.exists(try ref("A/2"))))
    #expect(try holds(.absent(try ref("A/2"))))
    #expect(try !holds(.absent(try ref("A/1"))))
  }

  @Test("A requirement looks at the object as it stood before the transaction, computed keys included")
  mutating func require() throws {
    let (a, b) = (try ref("A/1"), try ref("B/1"))
    let setX = Operation.set(a, keyPath: "x", .integer(1))
    let setY = Operation.set(b, keyPath: "y", .integer(1))
    for operations: [Operation] in [[], [setX], [setY], [setX, setY], [.set(a, keyPath: "b", .null)]] {
      var copy = fixture
      _ = try copy.model.commit(Transaction(operations + [.require(a, 4)]))
      copy = fixture
      _ = try copy.model.commit(Transaction(operations + [.require(a, 5)]))
      for since in [0, 2, 3, 6, 7] as [Revision] {
        let error = try fixture.error(operations + [.require(a, since)])
        #expect(error.code == .staleRevision, "\(since)")
      }
    }
    #expect(try fixture.error([.require(try ref("A/9"), 5)]).code == .staleRevision)
    #expect(try fixture.error([.create(try ref("A/9"), [:]), .require(try ref("A/9"), 5)]).code == .staleRevision)
    try fixture.commit(.delete(a), .require(a, 4))
  }

  @Test("Brackets nest, interleave and go around nothing")
  mutating func balanced() throws {
    let a = try ref("A/1")
    let commit = try fixture.commit(
      .willChange(a, key: "x"), .willChange(a, key: "by"), .willChange(a, key: "x"), .didChange(a, key: "x"),
      .didChange(a, key: "x"), .didChange(a, key: "by"))
    #expect(commit.steps.count == 6)
    #expect(commit.results == Array(repeating: a, count: 6))
    #expect(fixture.model.revision == 6)
  }

  @Test("Brackets that do not match are refused")
  mutating func unbalanced() throws {
    let (a, c) = (try ref("A/1"), try ref("C/1"))
    let willX = Operation.willChange(a, key: "x")
    let didX = Operation.didChange(a, key: "x")
    for operations: [Operation] in [
      [willX], [didX], [didX, willX], [willX, willX, didX], [willX, didX, didX], [willX, .didChange(a, key: "b")],
      [.willChange(a, key: "b"), .didChange(c, key: "b")], [willX, .delete(a)],
      [willX, .delete(a), .create(a, [:])],
    ] {
      #expect(try fixture.error(operations).code == .unbalancedBracket)
    }
    #expect(try fixture.error([.willChange(a, key: "q")]).code == .undefinedKey)
    #expect(try fixture.error([.willChange(a, key: "b.y")]).code == .undefinedKey)
    #expect(try fixture.error([.willChange(try ref("A/9"), key: "x")]).code == .unknownObject)
    #expect(try fixture.error([willX, .delete(a), didX]).code == .unknownObject)
  }
}
