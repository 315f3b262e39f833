import KeyValueModel
import Testing

@Suite("An object as JSON")
struct ObjectJSONTests {
  @Test("It has its reference, its revision and all keys in the schema's order, and tells its ETag's revision")
  func object() throws {
    var fixture = try Fixture(
      """
      entities:
        Account: {keys: {balance: {type: number}, owner: {toOne: Person}, ownerName: {computed: owner.name}}}
        Person: {keys: {name: {type: string}}}
      """)
    try fixture.create("Person/7", #"{"name":"Ann \"A\""}"#)
    try fixture.create("Account/1", #"{"owner":"Person/7","balance":100}"#)
    try fixture.set("Person/7", "name", #""Ann\n""#)
    let account = try ref("Account/1")
    let record = try #require(fixture.model.state.record(account))
    var bytes: [UInt8] = []
    let revision = fixture.model.state.appendJSON(of: account, record, to: &bytes)
    #expect(
      String(decoding: bytes, as: UTF8.self)
        == #"{"@ref":"Account/1","@revision":2,"balance":100,"owner":"Person/7","ownerName":"Ann\n"}"#)
    #expect(revision == 3)
    #expect(revision == fixture.model.state.revision(of: account))
  }

  @Test("An object without keys is its reference and revision")
  func empty() throws {
    var fixture = try Fixture("entities: {A: {}}")
    try fixture.create("A/1")
    let record = try #require(fixture.model.state.record(try ref("A/1")))
    var bytes: [UInt8] = []
    fixture.model.state.appendJSON(of: try ref("A/1"), record, to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"@ref":"A/1","@revision":1}"#)
  }
}
