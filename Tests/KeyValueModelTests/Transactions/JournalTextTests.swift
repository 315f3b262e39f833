import TestKit
import Testing

@testable import KeyValueModel

@Suite("Transactions as text")
struct JournalTextTests {
  @Test(
    "Each operation has exactly this text",
    arguments: [
      #"["create","Account/1",{"balance":100,"rate":1.0}]"#,
      #"["put","Account/1",{"@ref":"Account/1"}]"#,
      #"["set","Account/1","balance",120]"#,
      #"["set","Account/1","owner.name","a\"\n"]"#,
      #"["set","Account/1","balance",-0.0]"#,
      #"["set","Account/1","balance",5e-324]"#,
      #"["set","Account/1","balance",-9223372036854775808]"#,
      #"["set","Account/1","balance",1e+300]"#,
      #"["set","Account/1","balance",{"@@number":"-inf"}]"#,
      #"["set","Account/1","owner",{"@@reference":"Person/1"}]"#,
      #"["set","Account/1","owner","Person/1"]"#,
      #"["set","Account/1","tags",{"@@members":[false,["a","b"]]}]"#,
      #"["set","Account/1","list",{"@@members":[true,[{"@@reference":"Person/2"},{"@@reference":"Person/1"}]]}]"#,
      #"["set","Account/1","note",{"@@object":{"@@reference":{"@@reference":"Person/1"}}}]"#,
      #"["set","Account/1","note",{"a":1,"@@number":2.5}]"#,
      #"["patch","Account/1",{"@@number":null,"note":{"a":[true,false,null]}}]"#,
      #"["jsonPatch","Account/1",[["add","/a~1b/~0","x"],["remove","/a"],["replace","",{}],["move","/a","/b"],"#
        + #"["copy","/a","/-"],["test","/a",1.0]]]"#,
      #"["insert","Account/1","owners",["Person/1",{"@@made":["Person/2",{"@@made":[1],"name":"b"}]}],null]"#,
      #"["insert","Account/1","owners",[],[]]"#,
      #"["insert","Account/1","owners",[[{"@@object":{"@@made":1}}],{"@@object":{"@@made":[1]}}],[1,0]]"#,
      #"["removeIndexes","Account/1","owners",[2,0]]"#,
      #"["removeMembers","Account/1","owners",[{"@@reference":"Person/1"},"Person/2",3]]"#,
      #"["replace","Account/1","owners",[0],[{"@@made":["Person/2",{}]}]]"#,
      #"["mutateSet","Account/1","owners","union",["Person/1"]]"#,
      #"["mutateSet","Account/1","owners","minus",[]]"#,
      #"["mutateSet","Account/1","owners","intersect",[]]"#,
      #"["mutateSet","Account/1","owners","set",[]]"#,
      #"["delete","Account/1"]"#,
      #"["willChange","Account/1","balance"]"#,
      #"["didChange","Account/1","balance"]"#,
      #"["require","Account/1",18446744073709551615]"#,
      #"["lifetime","Account/1",31536000]"#,
      #"["lifetime","Account/1","stream=18446744073709551615"]"#,
      #"["lifetime","Account/1","none"]"#,
    ])
  func exactText(operation: String) throws {
    let text = "[\"me\",[\(operation),\(operation)]]"
    let transaction = try Transaction(journalText: Array(text.utf8))
    #expect(transaction.writer == "me")
    #expect(transaction.operations.count == 2)
    #expect(journalText(of: transaction) == text)
  }

  @Test("The sub of who wrote it stands last, and a text without one is of nobody or of somebody unknown")
  func author() throws {
    for (text, author) in [
      (#"["me",[["delete","Account/1"]],"a\"\nb"]"#, "a\"\nb"), (#"[null,[],""]"#, ""), (#"[null,[]]"#, nil),
    ] {
      let transaction = try Transaction(journalText: Array(text.utf8))
      #expect(transaction.author == author && journalText(of: transaction) == text)
    }
    for text in [#"[null,[],null]"#, #"[null,[],"a","b"]"#, #"[null,[],1]"#, #"[null,[],]"#] {
      #expect(throws: StoredTextError.self) { try Transaction(journalText: Array(text.utf8)) }
    }
  }

  @Test("Random transactions come back as they were, and do the same", arguments: 0..<10)
  func random(round: Int) throws {
    let seed = seed &+ UInt64(round)
    var world = try RandomWorld(seed: seed)
    var model = Model(schema: world.schema)
    for number in 0..<40 {
      let transaction = world.transaction(on: model)
      let back = try Transaction(journalText: Array(journalText(of: transaction).utf8))
      let place: Comment = "transaction \(number) of seed \(seed): \(journalText(of: transaction))"
      let isSame = "\(back)" == "\(transaction)" && journalText(of: back) == journalText(of: transaction)
      #expect(isSame, place)
      var copy = model
      let isSameCommit = portrayal(of: try model.commit(transaction)) == portrayal(of: try copy.commit(back))
      #expect(isSameCommit, place)
    }
  }

  @Test("Random values come back exactly, also those that JSON has no form for")
  func values() throws {
    var random = SplitMix64(seed: seed)
    let object = try ref("Account/1")
    for _ in 0..<2_000 {
      let value = ExactValues.value(depth: 4, &random)
      let transaction = Transaction([.set(object, keyPath: "note", value), .create(object, ["@@object": value])])
      let back = try Transaction(journalText: Array(journalText(of: transaction).utf8))
      let isSame = "\(back)" == "\(transaction)"
      #expect(isSame, "seed \(seed): \(journalText(of: transaction))")
    }
  }

  @Test("Values nested as deep as requests may be are read back, even with a mark at each level")
  func depth() throws {
    var value: Value = .reference(try ref("Account/1"))
    for level in 0..<64 { value = level.isMultiple(of: 2) ? .object(["@@object": value]) : .array([value]) }
    let transaction = Transaction([.set(try ref("Account/1"), keyPath: "note", value)])
    let back = try Transaction(journalText: Array(journalText(of: transaction).utf8))
    #expect(journalText(of: back) == journalText(of: transaction))
    let deep = Array(#"[null,[["set","Account/1","note","#.utf8) + Array(repeating: UInt8(ascii: "["), count: 100_000)
    #expect(throws: StoredTextError.self) { try Transaction(journalText: deep) }
  }

  @Test(
    "A text that no encoder writes is refused, with its place",
    arguments: [
      ("", "a '[' is missing (byte 0)"),
      ("[1,[]]", "a string is missing (byte 1)"),
      ("[null,[],1]", "a string is missing (byte 9)"),
      ("[null,[]] ", "unexpected text after the value (byte 9)"),
      (#"[null,[["sett","A/1"]]]"#, "unknown operation 'sett' (byte 8)"),
      (#"[null,[["delete","A"]]]"#, "'A' is not a reference (byte 17)"),
      (#"[null,[["delete","A/1",1]]]"#, "a ']' is missing (byte 22)"),
      (#"[null,[["create","A/1",[]]]]"#, "an object is missing (byte 23)"),
      (#"[null,[["set","A/1","b",{"@@new":1}]]]"#, "'@@new' is not a known mark (byte 33)"),
      (#"[null,[["set","A/1","b",{"@@number":"1"}]]]"#, "a marked number must not be finite (byte 39)"),
      (#"[null,[["set","A/1","b",{"@@reference":"A/1","c":1}]]]"#, "a '}' is missing (byte 44)"),
      (#"[null,[["mutateSet","A/1","b","xor",[]]]]"#, "unknown set operation 'xor' (byte 30)"),
      (#"[null,[["jsonPatch","A/1",[["add","a",1]]]]]"#, "'a' is not a JSON pointer (byte 34)"),
      (#"[null,[["jsonPatch","A/1",[["move","/a","/a/b"]]]]]"#, "a value cannot be moved into itself (byte 46)"),
      (#"[null,[["removeIndexes","A/1","b",[1.0]]]]"#, "an index must be a whole number (byte 38)"),
      (#"[null,[["require","A/1",18446744073709551616]]]"#, "a number has more than 64 bits (byte 43)"),
    ])
  func refused(text: String, message: String) {
    var caught: StoredTextError?
    do throws(StoredTextError) {
      _ = try Transaction(journalText: Array(text.utf8))
    } catch {
      caught = error
    }
    #expect(caught?.description == message)
  }

  @Test("A text that is cut or has one bit changed is read or refused, never more")
  func damage() throws {
    var world = try RandomWorld(seed: seed)
    var model = Model(schema: world.schema)
    for _ in 0..<2 {
      let transaction = world.transaction(on: model)
      _ = try model.commit(transaction)
      let text = Array(journalText(of: transaction).utf8)
      for length in 0..<text.count {
        #expect(throws: StoredTextError.self) { try Transaction(journalText: Array(text.prefix(length))) }
      }
      for place in 0..<text.count * 8 {
        var changed = text
        changed[place / 8] ^= 1 << UInt8(place % 8)
        guard let other = try? Transaction(journalText: changed) else { continue }
        // A transaction that was read can be written and read again.
        let again = try Transaction(journalText: Array(journalText(of: other).utf8))
        let isSame = "\(again)" == "\(other)"
        #expect(isSame, "seed \(seed): \(journalText(of: other))")
      }
    }
  }
}

/// Random values of every kind, including those that only a caller in this process can make.
enum ExactValues {
  static func value(depth: Int, _ random: inout SplitMix64) -> Value {
    switch Int.random(in: 0..<(depth > 0 ? 11 : 8), using: &random) {
    case 0: return .null
    case 1: return .bool(Bool.random(using: &random))
    case 2: return .integer(Int64(truncatingIfNeeded: random.next() >> (random.next() % 64)))
    case 3: return .number(Double(Int.random(in: -3...3, using: &random)))
    case 4:
      return .number(
        [-0.0, .infinity, -.infinity, 1e15, 1e16, .leastNonzeroMagnitude][Int.random(in: 0..<6, using: &random)])
    case 5:
      let number = Double(bitPattern: random.next())
      return .number(number.isFinite ? number : 0.5)
    case 6: return .string(text(&random))
    case 7: return Reference("Account/\(Int.random(in: 0..<9, using: &random))").map(Value.reference) ?? .null
    case 8: return .array(values(depth, &random))
    case 9: return .members(MemberList(values(depth, &random), isOrdered: Bool.random(using: &random)))
    default:
      var object = JSONObject()
      for value in values(depth, &random) { object[text(&random)] = value }
      return .object(object)
    }
  }

  private static func values(_ depth: Int, _ random: inout SplitMix64) -> [Value] {
    (0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth: depth - 1, &random) }
  }

  private static func text(_ random: inout SplitMix64) -> String {
    let texts = ["", "a", "@", "@@", "@@reference", "@@number", "@@members", "@@object", "@@made", "\"\\\u{1}\n", "é😀"]
    return texts.randomElement(using: &random) ?? ""
  }
}

/// Returns the text of a transaction in a journal.
func journalText(of transaction: Transaction) -> String {
  var bytes: [UInt8] = []
  transaction.appendJournalText(to: &bytes)
  return String(decoding: bytes, as: UTF8.self)
}
