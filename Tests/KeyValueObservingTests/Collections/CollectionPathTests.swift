import KeyValueModel
import KeyValueObserving
import Testing

@Suite("Collections behind key paths and in brackets")
struct CollectionPathTests {
  var fixture: Fixture

  init() throws { fixture = try CollectionSchema.fixture() }

  @Test("A collection at the end of a path keeps its kind and its places")
  mutating func end() throws {
    try fixture.observe("Company/1.main.employees")
    #expect(
      try fixture.told(#"insert Department/1 employees ["Employee/4"] @1"#) == [
        #"Company/1.main.employees insertion at 1 new=["Employee/4"]"#
      ])
  }

  @Test("Replacing a middle object is a setting, old is read through the old one, and the detached one falls silent")
  mutating func middle() throws {
    try fixture.observe("Company/1.main.employees")
    #expect(
      try fixture.told(#"set Company/1 main "Department/2""#) == [
        #"Company/1.main.employees old=["Employee/1","Employee/2"] new=["Employee/3"]"#
      ])
    #expect(try fixture.told("remove Department/1 employees @0") == [])
    #expect(
      try fixture.told("set Company/1 main null") == [#"Company/1.main.employees old=["Employee/3"] new=null"#])
  }

  @Test("A path that leads elsewhere to a collection that changes, in one operation, is one setting")
  mutating func both() throws {
    try fixture.observe("Employee/3.department.employees")
    #expect(
      try fixture.told(#"set Employee/3 department "Department/1""#) == [
        #"Employee/3.department.employees old=["Employee/3"] new=["Employee/1","Employee/2","Employee/3"]"#
      ])
  }

  @Test("An indexed change reaches @count, sums and computed keys as a setting without places")
  mutating func dependents() throws {
    try fixture.observe(
      "Department/1.employees", "Department/1.employees.@count", "Department/1.employees.@sum.salary",
      "Department/1.total", "Department/1.size", "Department/1.salaries")
    #expect(
      try fixture.told(#"insert Department/1 employees ["Employee/4"]"#) == [
        "Department/1.salaries old=[10,20] new=[10,20,40]", "Department/1.size old=2 new=3",
        "Department/1.total old=30 new=70", "Department/1.employees.@sum.salary old=30 new=70",
        "Department/1.employees.@count old=2 new=3",
        #"Department/1.employees insertion at 2 new=["Employee/4"]"#,
      ])
  }

  @Test("A path may not go on behind a collection when it is observed, but a computed key may, and is told")
  mutating func behind() throws {
    let entity = try #require(fixture.model.schema.entity(named: "Department"))
    #expect(throws: ModelError.self) { try fixture.model.schema.resolveObservable("employees.salary", from: entity) }
    try fixture.observe("Department/1.salaries")
    #expect(try fixture.told("set Employee/2 salary 25") == ["Department/1.salaries old=[10,20] new=[10,25]"])
    #expect(try fixture.told("set Employee/3 salary 1") == [])
  }

  // MARK: When a collection notifies

  @Test("A collection that notifies when changed is silent when it is assigned what it has")
  mutating func calm() throws {
    _ = try fixture.told(#"set Department/1 calm ["Employee/1"]"#)
    try fixture.observe("Department/1.calm", "Department/1.calm.@count", "Department/1.calmSize")
    #expect(try fixture.told(#"set Department/1 calm ["Employee/1"]"#) == [])
    #expect(try fixture.told(#"replace Department/1 calm ["Employee/1"] @0"#) == [])
    #expect(
      try fixture.told(#"replace Department/1 employees ["Employee/4"] @0"#) == [], "the size is the same")
    #expect(
      try fixture.told(#"insert Department/1 employees ["Employee/5"]"#) == ["Department/1.calmSize old=2 new=3"])
  }

  @Test("A manual collection is silent, its sums too, and the next bracket tells of all of it")
  mutating func manual() throws {
    try fixture.observe("Department/1.mute", "Department/1.mute.@sum.salary")
    #expect(try fixture.told(#"insert Department/1 mute ["Employee/4"]"#) == [])
    #expect(
      try fixture.told("set Employee/4 salary 41") == ["Department/1.mute.@sum.salary old=40 new=41"])
    #expect(
      try fixture.told("will Department/1 mute", #"insert Department/1 mute ["Employee/1"]"#, "did Department/1 mute")
        == [
          "Department/1.mute.@sum.salary old=41 new=51",
          #"Department/1.mute old=["Employee/4"] new=["Employee/4","Employee/1"]"#,
        ])
  }

  // MARK: Brackets

  @Test("A bracket around indexed changes gives one setting with the whole old and new")
  mutating func bracket() throws {
    try fixture.observe("Department/1.ranks", "Department/1.ranks.@max.self", options: [.old, .new, .prior])
    #expect(
      try fixture.told(
        "will Department/1 ranks", "insert Department/1 ranks [9] @0", "remove Department/1 ranks @1",
        "did Department/1 ranks")
        == [
          "Department/1.ranks prior old=[1,2,3]", "Department/1.ranks.@max.self prior old=3",
          "Department/1.ranks.@max.self old=3 new=9", "Department/1.ranks old=[1,2,3] new=[9,2,3]",
        ])
  }

  @Test("A bracket on a `changed` collection that is as it was in the end is silent, prior included")
  mutating func calmBracket() throws {
    try fixture.observe("Department/1.calm", options: [.old, .new, .prior])
    #expect(
      try fixture.told(
        "will Department/1 calm", #"insert Department/1 calm ["Employee/1"]"#, "remove Department/1 calm @0",
        "did Department/1 calm") == [])
  }

  @Test("A bracket around a sum tells it once, while the collection is told at each change")
  mutating func sumBracket() throws {
    try fixture.observe("Department/1.employees", "Department/1.total", "Company/1.total")
    #expect(
      try fixture.told(
        "will Department/1 total", #"insert Department/1 employees ["Employee/4"]"#, "set Employee/1 salary 11",
        "did Department/1 total")
        == [
          #"Department/1.employees insertion at 2 new=["Employee/4"]"#, "Company/1.total old=60 new=101",
          "Department/1.total old=30 new=71",
        ])
  }

  @Test("In a bracket around the middle object, what follows its replacement is a setting, once")
  mutating func middleBracket() throws {
    try fixture.observe("Company/1.main.ranks")
    #expect(
      try fixture.told(
        "will Company/1 main", "insert Department/1 ranks [4]", #"set Company/1 main "Department/2""#,
        "insert Department/2 ranks [7]", "insert Department/2 ranks [8]", "did Company/1 main")
        == [
          "Company/1.main.ranks insertion at 3 new=[4]", "Company/1.main.ranks old=[1,2,3,4] new=[7]",
          "Company/1.main.ranks insertion at 1 new=[8]", "Company/1.main.ranks old=[7,8] new=[7,8]",
        ])
  }

  @Test("Interleaved brackets around two collections are told in the order of their ends")
  mutating func interleaved() throws {
    try fixture.observe("Department/1.ranks", "Department/1.tags")
    #expect(
      try fixture.told(
        "will Department/1 ranks", "will Department/1 tags", #"union Department/1 tags ["c"]"#,
        "insert Department/1 ranks [4]", "did Department/1 ranks", "did Department/1 tags")
        == [
          "Department/1.ranks old=[1,2,3] new=[1,2,3,4]", #"Department/1.tags old=["a","b"] new=["a","b","c"]"#,
        ])
  }

  @Test("A bracket around a collection tells what is worked out from it once, at the end")
  mutating func inputBracket() throws {
    try fixture.observe("Department/1.total", "Company/1.total")
    #expect(
      try fixture.told(
        "will Department/1 employees", #"insert Department/1 employees ["Employee/4"]"#,
        "remove Department/1 employees @0", "did Department/1 employees")
        == ["Company/1.total old=60 new=90", "Department/1.total old=30 new=60"])
  }

  // MARK: Deletion

  @Test("A deletion takes the objects out of the lists that have them, in one removal for each")
  mutating func deletion() throws {
    _ = try fixture.told(#"set Department/2 calm ["Employee/1","Employee/3"]"#)
    try fixture.observe(
      "Department/1.employees", "Department/1.total", "Department/2.calm", "Department/2.calm.@sum.salary")
    #expect(
      try fixture.told("delete Employee/1") == [
        "Department/2.calm.@sum.salary old=40 new=30", #"Department/2.calm removal at 0 old=["Employee/1"]"#,
        "Department/1.total old=30 new=20", #"Department/1.employees removal at 0 old=["Employee/1"]"#,
      ])
  }

  @Test("An object deleted and made again in one transaction lives on: its keys are set to null, then to the new")
  mutating func again() throws {
    try fixture.observe("Department/1.ranks", "Department/1.total", "Department/1.size")
    #expect(
      try fixture.told(
        "delete Department/1", #"create Department/1 {"ranks":[7],"employees":["Employee/3"]}"#)
        == [
          "Department/1.ranks old=[1,2,3] new=null", "Department/1.size old=2 new=null",
          "Department/1.total old=30 new=null", "Department/1.ranks old=null new=[7]",
          "Department/1.size old=null new=1", "Department/1.total old=null new=30",
        ])
  }

  @Test("An empty collection that notifies when changed is null while its object is away")
  mutating func calmAgain() throws {
    try fixture.observe("Department/1.calm")
    #expect(
      try fixture.told("delete Department/1", "create Department/1 {}") == [
        "Department/1.calm old=[] new=null", "Department/1.calm old=null new=[]",
      ])
  }

  @Test("A collection that another key of the body fills is set as a whole when its object is made again")
  mutating func againWithItself() throws {
    try fixture.observe("Employee/1.reports")
    #expect(
      try fixture.told("delete Employee/1", #"create Employee/1 {"boss":"Employee/1"}"#) == [
        "Employee/1.reports old=[] new=null", #"Employee/1.reports old=null new=["Employee/1"]"#,
      ])
  }

  @Test("An object whose collection is changed and that is deleted in one transaction is only gone")
  mutating func gone() throws {
    try fixture.observe("Department/1.employees", "Department/1.total")
    #expect(
      try fixture.told(#"insert Department/1 employees ["Employee/4"]"#, "delete Department/1") == ["gone Department/1"]
    )
  }
}
