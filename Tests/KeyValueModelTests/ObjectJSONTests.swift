import KeyValueModel
import Testing

@Suite("An object as JSON")
struct ObjectJSONTests {
  @Test("It has its reference, its revision and all keys in the schema's order, and tells its ETag's revision")
  func object() throws {
    var bench = try Bench(
      """
      entities:
        Account: {keys: {balance: {type: number}, owner: {toOne: Person}, ownerName: {computed: owner.name}}}
        Person: {keys: {name: {type: string}}}
      """)
    try bench.create("Person/7", #"{"name":"Ann \"A\""}"#)
    try bench.create("Account/1", #"{"owner":"Person/7","balance":100}"#)
    try bench.set("Person/7", "name", #""Ann\n""#)
    let account = try ref("Account/1")
    let record = try #require(bench.model.state.record(account))
    var bytes: [UInt8] = []
    let revision = bench.model.state.appendJSON(of: account, record, to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"@ref":"Account/1","@revision":2,"balance":100,"owner":"Person/7","ownerName":"Ann\n"}"#)
    #expect(revision == 3)
    #expect(revision == bench.model.state.revision(of: account))
  }

  @Test("An object without keys is its reference and revision")
  func empty() throws {
    var bench = try Bench("entities: {A: {}}")
    try bench.create("A/1")
    let record = try #require(bench.model.state.record(try ref("A/1")))
    var bytes: [UInt8] = []
    bench.model.state.appendJSON(of: try ref("A/1"), record, to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"@ref":"A/1","@revision":1}"#)
  }
}
