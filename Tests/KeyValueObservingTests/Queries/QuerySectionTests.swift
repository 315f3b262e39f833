import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("Live queries with sections")
struct QuerySectionTests {
  /// Makes two departments with two employees each, and one without.
  private func fixture() throws -> QueryFixture {
    var fixture = try QueryFixture()
    _ = try fixture.told(#"put Department/1 {"name":"IT"}"#, #"put Department/2 {"name":"Sales"}"#)
    for number in 1...4 {
      _ = try fixture.told(
        #"put Employee/\#(number) {"salary":\#(number),"department":"Department/\#((number + 1) / 2)"}"#)
    }
    return fixture
  }

  @Test("a row that moves to the same numbers of what is another section is told")
  func sameNumbers() throws {
    var fixture = try fixture()
    try fixture.watch(section: "department.name")
    // Employee/1 is [0,0] before; as the only one without a department it is [0,0] after.
    #expect(
      try fixture.told("set Employee/1 department null") == ["move Employee/1 [0,0]>[0,0]", "section +null 0"])
    #expect(
      try fixture.told(#"set Employee/1 department "Department/1""#)
        == ["move Employee/1 [0,0]>[0,0]", "section -null 0"])
  }

  @Test("sections come in ascending order, whatever the sort says")
  func ascending() throws {
    var fixture = try fixture()
    let query = try fixture.watch(sort: "-salary", section: "department.name")
    #expect(fixture.rows(query) == ["Employee/2", "Employee/1", "Employee/4", "Employee/3"])
    #expect(fixture.live.result(of: query)?.windowSections?.map(\.name) == [.string("IT"), .string("Sales")])
    #expect(fixture.live.result(of: query)?.windowSections?.map(\.count) == [2, 2])
  }

  @Test("with the last row its section goes, with the first it comes")
  func lastRow() throws {
    var fixture = try fixture()
    try fixture.watch(section: "department.name")
    #expect(try fixture.told("delete Employee/1") == ["delete Employee/1 [0,0] deleted"])
    #expect(try fixture.told("delete Employee/2") == ["delete Employee/2 [0,0] deleted", #"section -"IT" 0"#])
    #expect(
      try fixture.told(#"put Employee/5 {"department":"Department/1"}"#)
        == ["insert Employee/5 >[0,0] created", #"section +"IT" 0"#])
    #expect(
      try fixture.told("delete Employee/3", "delete Employee/5")
        == ["delete Employee/5 [0,0] deleted", "delete Employee/3 [1,0] deleted", #"section -"IT" 0"#])
  }

  @Test("a department that is renamed moves all of its rows")
  func renamed() throws {
    var fixture = try fixture()
    try fixture.watch(section: "department.name")
    #expect(
      try fixture.told(#"set Department/1 name "Zoo""#)
        == [
          "move Employee/1 [0,0]>[1,0]", "move Employee/2 [0,1]>[1,1]", #"section +"Zoo" 1"#, #"section -"IT" 0"#,
        ])
    #expect(
      try fixture.told(#"set Department/1 name "Sales""#)
        == ["move Employee/1 [1,0]>[0,0]", "move Employee/2 [1,1]>[0,1]", #"section -"Zoo" 1"#])
  }

  @Test("a section that the limit cuts off goes")
  func limit() throws {
    var fixture = try fixture()
    let query = try fixture.watch(section: "department.name", limit: 3)
    #expect(fixture.live.result(of: query)?.windowSections?.map(\.count) == [2, 1])
    #expect(
      try fixture.told(#"put Employee/0 {"department":"Department/1"}"#)
        == ["delete Employee/3 [1,0] left", "insert Employee/0 >[0,0] created", #"section -"Sales" 1"#])
  }
}
