import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("Aggregates over collections")
struct AggregateObservingTests {
  var fixture: Fixture

  init() throws { fixture = try CollectionSchema.fixture() }

  @Test("A sum notifies when a member's value changes, also to an equal one, and not for those who are no members")
  mutating func members() throws {
    try fixture.observe("Department/1.employees.@sum.salary", "Company/1.main.employees.@sum.salary")
    #expect(
      try fixture.told("set Employee/1 salary 12") == [
        "Company/1.main.employees.@sum.salary old=30 new=32", "Department/1.employees.@sum.salary old=30 new=32",
      ])
    #expect(try fixture.told("set Employee/1 salary 12").count == 2)
    #expect(try fixture.told("set Employee/3 salary 12") == [])
    #expect(
      try fixture.told(#"set Company/1 main "Department/2""#) == [
        "Company/1.main.employees.@sum.salary old=32 new=12"
      ])
    #expect(
      try fixture.told("set Employee/1 salary 13") == ["Department/1.employees.@sum.salary old=32 new=33"])
  }

  @Test("Members that come are followed, and members that went are not")
  mutating func comingAndGoing() throws {
    try fixture.observe("Department/1.total")
    _ = try fixture.told("remove Department/1 employees @0")
    #expect(try fixture.told("set Employee/1 salary 1") == [])
    _ = try fixture.told(#"insert Department/1 employees ["Employee/5"]"#)
    #expect(try fixture.told("set Employee/5 salary 1") == ["Department/1.total old=70 new=21"])
  }

  @Test("A sum of sums follows the members of the members, and forgets those of a member that went")
  mutating func nested() throws {
    try fixture.observe("Company/1.total")
    #expect(try fixture.told("set Employee/3 salary 31") == ["Company/1.total old=60 new=61"])
    #expect(
      try fixture.told(#"remove Company/1 departments ["Department/2"]"#) == ["Company/1.total old=61 new=30"])
    #expect(try fixture.told("set Employee/3 salary 32") == [])
    #expect(fixture.index.collections.watches.count == 2, "those of the company and of the department that is left")
    #expect(
      try fixture.told(#"insert Department/1 employees ["Employee/3"]"#) == ["Company/1.total old=30 new=62"])
    fixture.index.remove(ObserverID(1))
    #expect(
      fixture.index.linkCount == 0 && fixture.index.collections.isEmpty && fixture.index.collections.linkCount == 0)
  }

  @Test("Moving a member between two collections of one sum is heard once")
  mutating func moving() throws {
    try fixture.observe("Company/1.total")
    #expect(
      try fixture.told(#"set Employee/1 department "Department/2""#) == ["Company/1.total old=60 new=60"])
  }

  @Test("@sum and @avg take null as 0, @avg divides by the number of members, of nothing they are 0 and null")
  mutating func sums() throws {
    try fixture.observe("Department/1.employees.@sum.salary", "Department/1.employees.@avg.salary")
    #expect(
      try fixture.told("set Employee/1 salary null") == [
        "Department/1.employees.@avg.salary old=15 new=10", "Department/1.employees.@sum.salary old=30 new=20",
      ])
    #expect(
      try fixture.told("set Department/1 employees []") == [
        "Department/1.employees.@avg.salary old=10 new=null", "Department/1.employees.@sum.salary old=20 new=0",
      ])
  }

  @Test("A sum that notifies when changed is silent when who comes and goes adds nothing")
  mutating func calmSum() throws {
    _ = try fixture.told("set Employee/4 salary 0")
    _ = try fixture.told("set Department/2 employees []")
    try fixture.observe("Department/2.calmTotal")
    #expect(try fixture.told(#"insert Department/2 employees ["Employee/4"]"#) == [])
    #expect(try fixture.told("set Employee/4 salary null") == [])
    #expect(try fixture.told("set Employee/4 salary 3") == ["Department/2.calmTotal old=0 new=3"])
  }

  @Test("A sum that notifies when changed is silent also where its owner is one of its members")
  mutating func calmSumOfItself() throws {
    var fixture = try Fixture(
      """
      entities:
        Box:
          keys:
            weight: {type: integer}
            boxes: {toMany: Box, inverse: outer}
            outer: {toOne: Box, inverse: boxes}
            total: {computed: boxes.@sum.weight, notifies: changed}
      """, #"create Box/1 {"weight":1}"#, #"create Box/2 {"weight":2,"boxes":["Box/1","Box/2"]}"#)
    // The members of the sum are followed first, and those of the maximum after them.
    try fixture.observe("Box/2.total", observer: 2)
    try fixture.observe("Box/2.boxes.@max.total")
    #expect(try fixture.told("set Box/1 weight 1") == [])
    #expect(try fixture.told("set Box/1 weight 3") == ["Box/2.boxes.@max.total old=3 new=5"])
    fixture.index.remove(ObserverID(2))
    #expect(try fixture.told("set Box/1 weight 3") == [])
  }

  @Test("@min and @max skip nulls, and find the next when the extreme goes; of nothing they are null")
  mutating func extremes() throws {
    try fixture.observe("Department/1.employees.@min.salary", "Department/1.employees.@max.salary")
    #expect(
      try fixture.told("set Employee/2 salary null") == [
        "Department/1.employees.@max.salary old=20 new=10", "Department/1.employees.@min.salary old=10 new=10",
      ])
    #expect(
      try fixture.told("remove Department/1 employees @0") == [
        "Department/1.employees.@max.salary old=10 new=null", "Department/1.employees.@min.salary old=10 new=null",
      ])
  }

  @Test("@min and @max of strings are by their bytes, of dates by the moment")
  mutating func stringsAndDates() throws {
    try fixture.observe("Department/1.employees.@min.hired", "Department/1.tags.@max.self")
    _ = try fixture.told(#"set Employee/1 hired "2010-03-01T09:30:00+02:00""#)
    #expect(
      try fixture.told(#"set Employee/2 hired "2010-03-01T08:00:00Z""#) == [
        #"Department/1.employees.@min.hired old="2010-03-01T09:30:00+02:00" new="2010-03-01T09:30:00+02:00""#
      ])
    #expect(
      try fixture.told(#"set Employee/1 hired null"#) == [
        #"Department/1.employees.@min.hired old="2010-03-01T09:30:00+02:00" new="2010-03-01T08:00:00Z""#
      ])
    #expect(
      try fixture.told(#"union Department/1 tags ["Z"]"#) == [#"Department/1.tags.@max.self old="b" new="b""#])
  }

  @Test("Unions drop nulls and keep the order of the members; distinct ones have each value once")
  mutating func unions() throws {
    try fixture.observe(
      "Department/1.employees.@unionOfObjects.salary", "Department/1.employees.@distinctUnionOfObjects.salary",
      "Company/1.departments.@unionOfArrays.employees", "Company/1.departments.@distinctUnionOfArrays.tags")
    #expect(
      try fixture.told("set Employee/2 salary 10") == [
        "Department/1.employees.@distinctUnionOfObjects.salary old=[10,20] new=[10]",
        "Department/1.employees.@unionOfObjects.salary old=[10,20] new=[10,10]",
      ])
    #expect(
      try fixture.told("set Employee/1 salary null") == [
        "Department/1.employees.@distinctUnionOfObjects.salary old=[10] new=[10]",
        "Department/1.employees.@unionOfObjects.salary old=[10,10] new=[10]",
      ])
    #expect(
      try fixture.told(#"union Department/2 tags ["b","c"]"#) == [
        #"Company/1.departments.@distinctUnionOfArrays.tags old=["a","b"] new=["a","b","c"]"#
      ])
    #expect(
      try fixture.told("remove Department/2 employees @0").contains(
        #"Company/1.departments.@unionOfArrays.employees old=["Employee/1","Employee/2","Employee/3"]"#
          + #" new=["Employee/1","Employee/2"]"#
      ))
  }

  @Test("An aggregate of a deleted object's collection is null until the object is made again")
  mutating func deletedOwner() throws {
    try fixture.observe("Department/1.employees.@sum.salary")
    #expect(
      try fixture.told("delete Department/1", "create Department/1 {}") == [
        "Department/1.employees.@sum.salary old=30 new=null", "Department/1.employees.@sum.salary old=null new=0",
      ])
  }

  @Test("An operator over a computed list folds its values")
  mutating func computedList() throws {
    try fixture.observe("Department/1.paySum", "Department/1.pay.@max.self")
    #expect(
      try fixture.told("set Employee/1 salary 25") == [
        "Department/1.paySum old=30 new=45", "Department/1.pay.@max.self old=20 new=25",
      ])
  }

  @Test("A sum over what is worked out from a list of sums is right at once")
  mutating func sumBehindUnion() throws {
    _ = try fixture.told(#"set Employee/1 reports ["Employee/4"]"#)
    _ = try fixture.told(#"set Employee/2 reports ["Employee/5"]"#)
    try fixture.observe("Company/1.variety")
    #expect(try fixture.told("set Employee/5 salary 40") == ["Company/1.variety old=3 new=2"])
    #expect(try fixture.told("set Employee/5 salary 41") == ["Company/1.variety old=2 new=3"])
  }

  @Test("Behind a computed list of objects operators can be read and not observed, and paths do not go on")
  mutating func behindComputedList() throws {
    let entity = try #require(fixture.model.schema.entity(named: "Company"))
    let sum = try fixture.model.schema.resolve("staff.@sum.salary", from: entity)
    #expect(fixture.model.state.value(of: try ref("Company/1"), at: sum) != .null)
    #expect(throws: ModelError.self) { try fixture.model.schema.resolveObservable("staff.@sum.salary", from: entity) }
    #expect(throws: ModelError.self) { try fixture.model.schema.resolve("staff.salary", from: entity) }
    let counted = try fixture.model.schema.resolveObservable("staff.@count", from: entity)
    #expect(fixture.model.state.value(of: try ref("Company/1"), at: counted) == .integer(3))
  }
}
