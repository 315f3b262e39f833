import KeyValueModel
import Testing

@testable import KeywayServer

@Suite("Repeating what a feed tells")
struct FeedRepetitionTests {
  private static let yaml = """
    entities:
      Person:
        keys:
          name: {type: string}
          note: {type: json}
          height: {type: number}
          team: {toOne: Team, inverse: people}
      Team:
        keys:
          people: {toMany: Person, ordered: true, inverse: team}
          tags: {toMany: string}
          notes: {toMany: json}
          fans: {toMany: Person}
    """

  @Test("Operations that a transaction takes do the same once more")
  func repeated() throws {
    let texts = [
      #"["create","Team/1",{"tags":["b","a"],"fans":[]}]"#,
      #"["create","Person/1",{"height":1,"note":[1,1.0,-0.0,{"@@object":{"@@a":1e+300}}],"team":"Team/1"}]"#,
      #"["set","Person/1","height",2.0]"#,
      #"["set","Person/1","note",{"@@object":{"@@object":100.0}}]"#,
      #"["patch","Person/1",{"note":{"a":[1.0,1]},"name":"Anna"}]"#,
      #"["insert","Team/1","people",[{"@@made":["Person/2",{"name":"b","note":5.0}]},"#
        + #"{"@@made":["Person/3",{}]}],null]"#,
      #"["insert","Team/1","people",[{"@@made":["Person/4",{"@ref":"Person/4"}]}],[1]]"#,
      #"["insert","Team/1","notes",[[1,2],{"a":1.0},3.0,"x"],null]"#,
      #"["insert","Team/1","fans",[{"@@reference":"Person/1"},"Person/2"],null]"#,
      #"["removeMembers","Team/1","notes",[[1,2]]]"#,
      #"["removeMembers","Team/1","fans",[{"@@reference":"Person/1"}]]"#,
      #"["replace","Team/1","people",[0],[{"@@made":["Person/5",{"height":3}]}]]"#,
      #"["removeIndexes","Team/1","people",[3,1]]"#,
      #"["willChange","Person/1","name"]"#, #"["didChange","Person/1","name"]"#,
      #"["delete","Person/5"]"#,
    ]
    let schema = try Schema(yaml: Self.yaml)
    var (model, follower) = (Model(schema: schema), Model(schema: schema))
    for operations in [texts.joined(separator: ","), #"["require","Team/1",1]"#] {
      let transaction = try Transaction(journalText: Array("[null,[\(operations)]]".utf8))
      _ = try model.commit(transaction)
      _ = try follower.commit(Transaction(try Self.told(transaction, schema)))
    }
    #expect(model.state.count == 5)
    #expect(Self.blocks(of: follower.state) == Self.blocks(of: model.state))
  }

  @Test(
    "Operations that no transaction takes are refused",
    arguments: [
      #"["put","Person/1",{}]"#, #"["jsonPatch","Person/1",[["remove","/name"]]]"#,
      #"["mutateSet","Team/1","fans","union",["Person/1"]]"#,
    ])
  func refused(text: String) throws {
    let transaction = try Transaction(journalText: Array("[null,[\(text)]]".utf8))
    let schema = try Schema(yaml: Self.yaml)
    #expect(throws: ModelError.self) { try Self.told(transaction, schema) }
  }

  /// Returns the operations that a reader of the feed takes from it.
  private static func told(_ transaction: Transaction, _ schema: Schema) throws -> [KeyValueModel.Operation] {
    var bytes: [UInt8] = []
    transaction.appendFeedText(revision: 1, milliseconds: 0, to: &bytes)
    guard case .object(let feed) = try Value(json: bytes), let operations = feed["operations"]?.elements else {
      return []
    }
    return try operations.map { try OperationReader($0, schema, makeID: { "made" }).operation() }
  }

  private static func blocks(of state: ModelState) -> [String] {
    var encoder = StateEncoder(state)
    var blocks: [String] = []
    while let block = encoder.nextBlock() { blocks.append(String(decoding: block, as: UTF8.self)) }
    return blocks
  }
}
