import KeyValueModel
import Testing

@Suite("Key paths behind to-manys")
struct CollectionKeyPathTests {
  static let schema = """
    entities:
      Department:
        keys:
          name: { type: string }
          staff: { toMany: Worker, ordered: true, inverse: department }
          friends: { computed: staff.@distinctUnionOfObjects.department }
      Worker:
        keys:
          department: { toOne: Department, inverse: staff }
          tags: { toMany: string }
          mates: { toMany: Worker }
    """

  @Test(
    "A path may go on behind a to-many through to-ones and further to-manys",
    arguments: [
      ("staff.department.name", #"["D","D"]"#), ("staff.department.staff.department.name", #"[["D","D"],["D","D"]]"#),
      ("staff.mates.department.name", #"[["D"],[]]"#), ("staff.tags", #"[["a"],[]]"#),
      ("staff.@unionOfObjects.mates.department", #"[["Department/1"],[]]"#),
      ("staff.department.friends", #"[["Department/1"],["Department/1"]]"#),
    ])
  func goingOn(text: String, value: String) throws {
    var fixture = try Fixture(Self.schema)
    try fixture.create("Worker/1", #"{"tags":["a"]}"#)
    try fixture.create("Worker/2")
    try fixture.create("Department/1", #"{"name":"D","staff":["Worker/1","Worker/2"]}"#)
    try fixture.set("Worker/1", "mates", #"["Worker/2"]"#)
    let reference = try ref("Department/1")
    let path = try fixture.model.schema.resolve(text, from: fixture.model.state.requireRecord(reference).entity)
    #expect(fixture.model.state.value(of: reference, at: path).json == value)
  }

  @Test(
    "Nothing goes on behind a computed list, wherever it stands",
    arguments: [
      "friends.name", "staff.department.friends.name", "staff.@unionOfObjects.department.friends.name",
      "staff.tags.name",
    ])
  func behindComputedList(text: String) throws {
    let schema = try Schema(yaml: Self.schema)
    let error = try #require(throws: ModelError.self) { try schema.resolve(text, from: schema.entities[0]) }
    #expect(error.code == .undefinedKey)
  }
}
