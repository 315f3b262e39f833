import TestKit
import Testing

@testable import KeyValueModel

@Suite("States as blocks of text")
struct StateTextTests {
  @Test("A state that comes back from its blocks is the same and behaves the same", arguments: 0..<10)
  func random(round: Int) throws {
    let seed = seed &+ UInt64(round)
    var world = try RandomWorld(seed: seed)
    var model = Model(schema: world.schema)
    // The same transactions, redone without commits, beside copies that must not change.
    var redone = model
    var copies: [(model: Model, portrayal: [String])] = []
    for number in 0..<45 {
      let transaction = world.transaction(on: model)
      _ = try model.commit(transaction)
      try redone.redo(transaction, at: 0)
      copies.append((redone, portrayal(of: redone)))
      guard number % 15 == 14 else { continue }
      let isRedone = portrayal(of: redone) == portrayal(of: model)
      #expect(redone.state.memoryBytes == model.state.memoryBytes)
      #expect(isRedone, "transaction \(number) of seed \(seed)\n\(world.yaml)")
      let place: Comment = "transaction \(number) of seed \(seed)\n\(world.yaml)"
      let blockBytes = Int.random(in: 1...2_000, using: &world.random)
      let restored = try Self.restored(model.state, blockBytes: blockBytes, &world.random)
      var copy = Model(state: restored, revision: model.revision)
      // Compared outside the macro, which would compute the difference of long lists.
      let isSame = portrayal(of: copy) == portrayal(of: model)
      #expect(isSame, place)
      #expect(
        inconsistencies(in: restored, others: (world.references, [.null, .integer(1), .string("text 1")])) == [], place)
      var original = model
      for _ in 0..<15 {
        let transaction = world.transaction(on: original)
        let isSame = portrayal(of: try original.commit(transaction)) == portrayal(of: try copy.commit(transaction))
        #expect(isSame, place)
      }
      let isSameAfter = portrayal(of: copy) == portrayal(of: original)
      #expect(isSameAfter, place)
      #expect(inconsistencies(in: copy.state, others: (world.references, [])) == [], place)
    }
    for copy in copies {
      let isKept = portrayal(of: copy.model) == copy.portrayal
      #expect(isKept, "revision \(copy.model.revision) of seed \(seed)\n\(world.yaml)")
    }
  }

  @Test("Settings that are carried out again, one each, leave the same model and no copy changed")
  func redoneSettings() throws {
    var random = SplitMix64(seed: seed)
    var model = Model(schema: try Schema(yaml: Self.yaml))
    let accounts = try (0..<40).map { try ref("Account/\($0)") }
    _ = try model.commit(Transaction(accounts.map { .create($0, [:]) }))
    let values: [(key: String, value: Value)] = [
      ("title", .string("a title that is longer than a word")), ("title", .null), ("balance", .integer(3)),
      ("balance", .number(1.5)), ("count", .integer(.max)), ("open", .bool(true)), ("since", .string("2010-03-01")),
      ("note", .array([.null])), ("note", .number(-0.0)), ("owner", .null), ("doubled", .number(2)), ("gone", .null),
      ("count", .string("no")),
    ]
    var redone = model
    var copies: [(model: Model, portrayal: [String])] = []
    for step in 0..<2_000 {
      let (key, value) = values[Int.random(in: values.indices, using: &random)]
      let account = accounts[Int.random(in: accounts.indices, using: &random)]
      let transaction = Transaction([.set(account, keyPath: key, value)])
      let isCommitted = (try? model.commit(transaction)) != nil
      let isRedone = (try? redone.redo(transaction, at: 0)) != nil
      #expect(isCommitted == isRedone, "step \(step) of seed \(seed)")
      if step.isMultiple(of: 100) { copies.append((redone, portrayal(of: redone))) }
    }
    #expect(model.revision > 1_000)
    let isSame = portrayal(of: redone) == portrayal(of: model)
    #expect(isSame, "seed \(seed)")
    #expect(accounts.allSatisfy { redone.state.record($0)?.size == model.state.record($0)?.size })
    #expect(redone.state.memoryBytes == model.state.memoryBytes)
    for copy in copies {
      let isKept = portrayal(of: copy.model) == copy.portrayal
      #expect(isKept, "revision \(copy.model.revision) of seed \(seed)")
    }
  }

  private static let yaml = """
    entities:
      Person:
        keys:
          name: {type: string}
      Account:
        keys:
          title: {type: string}
          doubled: {type: number, computed: balance * 2.0}
          balance: {type: number}
          count: {type: integer}
          open: {type: boolean}
          since: {type: date}
          note: {type: json}
          owner: {toOne: Person}
          others: {toMany: Person, ordered: true}
          tags: {toMany: string}
    """

  private static func example() throws -> ModelState {
    var fixture = try Fixture(yaml)
    try fixture.create("Person/b")
    try fixture.create("Person/a", #"{"name":"Anna"}"#)
    try fixture.create(
      "Account/1",
      #"""
      {"title":"Person/a","balance":100,"count":9223372036854775807,"open":true,"since":"2010-03-01","owner":"Person/a",
       "note":{"@@object":[1,1.0,-0.0]},"others":["Person/b","Person/a"],"tags":["z","x"]}
      """#)
    try fixture.create("Account/0")
    try fixture.set("Account/1", "open", "false")
    return fixture.model.state
  }

  @Test("A block has exactly this text")
  func exactText() throws {
    let blocks = Self.blocks(of: try Self.example())
    let keys = #"["title","balance","count","open","since","note","owner","others","tags"]"#
    let one =
      #""Person/a",100.0,9223372036854775807,false,"2010-03-01",{"@@object":{"@@object":[1,1.0,-0.0]}},"Person/a","#
    #expect(
      blocks.map { String(decoding: $0, as: UTF8.self) } == [
        #"[["Person",["name"],[["a",2,2,"Anna"],["b",1,1,null]]],["Account",\#(keys),["#
          + #"["0",4,4,null,null,null,null,null,null,null,[],[]],"#
          + #"["1",5,3,\#(one)["Person/b","Person/a"],["x","z"]]]]]"#
      ])
  }

  @Test("Values come back in the form that they had")
  func exactValues() throws {
    let state = try Self.example()
    var decoder = StateDecoder(schema: state.schema)
    for block in Self.blocks(of: state, blockBytes: 1) { try decoder.decode(block, state.schema) }
    let record = try #require(try decoder.finish().record(try ref("Account/1")))
    let expected = try #require(state.record(try ref("Account/1")))
    #expect("\(record.values)" == "\(expected.values)")
    #expect(record.revision == 5 && record.createdAt == 3)
  }

  @Test("A state without objects has no blocks")
  func empty() throws {
    #expect(Self.blocks(of: ModelState(schema: try Schema(yaml: Self.yaml))).isEmpty)
  }

  @Test(
    "Data that does not fit the schema is refused, with its place",
    arguments: [
      (#"[]"#, "a '[' is missing (byte 1)"),
      (#"[["Persons",["name"],[]]]"#, "the schema has no entity 'Persons' (byte 2)"),
      (#"[["Person",["title"],[]]]"#, "Person has the keys name and not title (byte 11)"),
      (#"[["Person",["name"],[["..",1,1,null]]]]"#, "'..' is not an id (byte 22)"),
      (#"[["Person",["name"],[["a",1,2,null]]]]"#, "Person/a was changed before it was created (byte 29)"),
      (#"[["Person",["name"],[["a",1,1,5]]]]"#, "'name' must be a string, not a number (byte 30)"),
      (#"[["Person",["name"],[["a",1,1]]]]"#, "a ',' is missing (byte 29)"),
      (#"[["Person",["name"],[["a",1,1,null,1]]]]"#, "a '[' is missing (byte 35)"),
      (#"[["Person",["name"],[["a",1,1,null]]]]]"#, "unexpected text after the value (byte 38)"),
      (#"[["Person",["name"],[["a",1,1,null],["a",1,1,null]]]]"#, "Person/a occurs twice (byte 0)"),
    ])
  func refused(text: String, message: String) throws {
    let schema = try Schema(yaml: Self.yaml)
    var decoder = StateDecoder(schema: schema)
    var caught: StoredTextError?
    do throws(StoredTextError) {
      try decoder.decode(Array(text.utf8), schema)
      _ = try decoder.finish()
    } catch {
      caught = error
    }
    #expect(caught?.description == message)
  }

  @Test("A block that is cut or has one bit changed is read or refused, never more")
  func damage() throws {
    let state = try Self.example()
    for block in Self.blocks(of: state) {
      for length in 0..<block.count {
        let isRefused = (try? StateDecoder.block(of: Array(block.prefix(length)), schema: state.schema)) == nil
        #expect(isRefused, "\(length) bytes")
      }
      for place in 0..<block.count * 8 {
        var changed = block
        changed[place / 8] ^= 1 << UInt8(place % 8)
        var decoder = StateDecoder(schema: state.schema)
        guard (try? decoder.decode(changed, state.schema)) != nil, let read = try? decoder.finish() else { continue }
        // A decoded state can be encoded and decoded again.
        var again = StateDecoder(schema: state.schema)
        for block in Self.blocks(of: read) { try again.decode(block, state.schema) }
        _ = try again.finish()
      }
    }
  }

  static func blocks(of state: ModelState, blockBytes: Int = 1 << 16) -> [[UInt8]] {
    var encoder = StateEncoder(state, blockBytes: blockBytes)
    var blocks: [[UInt8]] = []
    while let block = encoder.nextBlock() { blocks.append(block) }
    return blocks
  }

  /// Decodes the blocks of a state in a random order.
  private static func restored(
    _ state: ModelState, blockBytes: Int, _ random: inout SplitMix64
  ) throws -> ModelState {
    let blocks = blocks(of: state, blockBytes: blockBytes)
    var decoder = StateDecoder(schema: state.schema)
    for block in blocks.shuffled(using: &random) { try decoder.decode(block, state.schema) }
    let restored = try decoder.finish()
    let isSame = Self.blocks(of: restored, blockBytes: blockBytes) == blocks
    #expect(isSame, "other blocks")
    return restored
  }
}

/// Returns a commit as text, with everything in it.
func portrayal(of commit: Commit) -> [String] {
  var lines = ["revision \(commit.revision) by \(commit.writer ?? "nobody"): \(commit.results)"]
  for (object, record) in commit.before { lines.append("\(object) was \(portrayal(of: record))") }
  for step in commit.steps {
    lines.append("\(step.kind)")
    for (object, after) in step.writes { lines.append("\(object) becomes \(portrayal(of: after))") }
  }
  return lines
}

private func portrayal(of record: ObjectRecord?) -> String {
  guard let record else { return "not there" }
  var values: [UInt8] = []
  Value.array(Array(record.values)).appendStoredText(.exact, to: &values)
  return
    "\(record.entity.name) @\(record.revision) from \(record.createdAt): \(String(decoding: values, as: UTF8.self))"
}

extension StateDecoder {
  /// Reads a block and adds its objects.
  fileprivate mutating func decode(_ block: [UInt8], _ schema: Schema) throws(StoredTextError) {
    insert(try Self.block(of: block, schema: schema))
  }
}

extension RandomWorld {
  /// A transaction that can be applied.
  mutating func transaction(on model: Model) -> Transaction {
    var trial = model
    var operations: [KeyValueModel.Operation] = []
    for _ in 0..<Int.random(in: 1...7, using: &random) {
      let operation = operation(on: trial.state)
      if (try? trial.commit(Transaction([operation]))) != nil { operations.append(operation) }
    }
    return Transaction(operations, writer: Bool.random(using: &random) ? "somebody" : nil)
  }
}
