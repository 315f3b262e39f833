import KeyValueModel
import KeyValueObserving
import Testing

@Suite("Changes of collections")
struct CollectionObservingTests {
  var fixture: Fixture

  init() throws { fixture = try CollectionSchema.fixture() }

  // MARK: Kinds and indexes

  @Test("An insertion has the places after it, ascending, and the new members in their order")
  mutating func insertion() throws {
    try fixture.observe("Department/1.ranks", options: [.old, .new, .prior])
    #expect(
      try fixture.told("insert Department/1 ranks [9,8] @4,0") == [
        "Department/1.ranks insertion at 0,4 prior old=[]", "Department/1.ranks insertion at 0,4 new=[8,9]",
      ])
  }

  @Test("A removal has the places before it, ascending, and the old members in their order")
  mutating func removal() throws {
    try fixture.observe("Department/1.ranks", options: [.old, .new, .prior])
    #expect(
      try fixture.told("remove Department/1 ranks @2,0") == [
        "Department/1.ranks removal at 0,2 prior old=[1,3]", "Department/1.ranks removal at 0,2 old=[1,3]",
      ])
    #expect(
      try fixture.told("remove Department/1 ranks [2]") == [
        "Department/1.ranks removal at 0 prior old=[2]", "Department/1.ranks removal at 0 old=[2]",
      ])
  }

  @Test("A replacement has its places, the old members and the new ones")
  mutating func replacement() throws {
    try fixture.observe("Department/1.ranks", options: [.old, .new, .prior])
    #expect(
      try fixture.told("replace Department/1 ranks [9,8] @2,0") == [
        "Department/1.ranks replacement at 0,2 prior old=[1,3]",
        "Department/1.ranks replacement at 0,2 old=[1,3] new=[8,9]",
      ])
  }

  @Test("Only what was asked for is told, and indexes are told to everybody")
  mutating func options() throws {
    try fixture.observe("Department/1.ranks", options: [])
    try fixture.observe("Department/1.ranks", options: [.prior], observer: 2)
    let events = try fixture.apply(["replace Department/1 ranks [9] @1"])
    #expect(events[1].map(lines) == ["Department/1.ranks replacement at 1"])
    #expect(
      events[2].map(lines) == ["Department/1.ranks replacement at 1 prior", "Department/1.ranks replacement at 1"])
  }

  @Test("Assigning a whole collection is a setting, also to an equal value, and to none")
  mutating func assignment() throws {
    try fixture.observe("Department/1.ranks")
    #expect(try fixture.told("set Department/1 ranks [1,2,3,4]") == ["Department/1.ranks old=[1,2,3] new=[1,2,3,4]"])
    #expect(try fixture.told("set Department/1 ranks [1,2,3,4]") == ["Department/1.ranks old=[1,2,3,4] new=[1,2,3,4]"])
    #expect(try fixture.told("patch Department/1 {\"ranks\":[]}") == ["Department/1.ranks old=[1,2,3,4] new=[]"])
  }

  // MARK: Sets

  @Test("An unordered set tells only the members that were really added or removed, and no places")
  mutating func sets() throws {
    try fixture.observe("Department/1.tags", options: [.old, .new, .prior])
    #expect(
      try fixture.told(#"union Department/1 tags ["c","a"]"#) == [
        "Department/1.tags insertion prior old=[]", #"Department/1.tags insertion new=["c"]"#,
      ])
    #expect(
      try fixture.told(#"minus Department/1 tags ["x","a"]"#) == [
        #"Department/1.tags removal prior old=["a"]"#, #"Department/1.tags removal old=["a"]"#,
      ])
    #expect(
      try fixture.told(#"intersect Department/1 tags ["c","z"]"#) == [
        #"Department/1.tags removal prior old=["b"]"#, #"Department/1.tags removal old=["b"]"#,
      ])
    #expect(
      try fixture.told(#"insert Department/1 tags ["c","d"]"#) == [
        "Department/1.tags insertion prior old=[]", #"Department/1.tags insertion new=["d"]"#,
      ])
  }

  @Test("The set operation `set` is a replacement, also where it only added or only removed")
  mutating func setOperation() throws {
    try fixture.observe("Department/1.tags")
    #expect(
      try fixture.told(#"assign Department/1 tags ["b","c"]"#) == [
        #"Department/1.tags replacement old=["a"] new=["c"]"#
      ])
    #expect(
      try fixture.told(#"assign Department/1 tags ["b","c","d"]"#) == [
        #"Department/1.tags replacement old=[] new=["d"]"#
      ])
    #expect(
      try fixture.told(#"assign Department/1 tags ["b"]"#) == [#"Department/1.tags replacement old=["c","d"] new=[]"#])
  }

  @Test(
    "An operation that does not change a collection sends no notification",
    arguments: [
      #"union Department/1 tags ["a"]"#, #"minus Department/1 tags ["x"]"#, #"assign Department/1 tags ["b","a"]"#,
      #"intersect Department/1 tags ["a","b","c"]"#, #"insert Department/1 tags ["a"]"#,
      #"remove Department/1 tags ["x"]"#, #"remove Department/1 employees ["Employee/4"]"#,
      #"remove Department/1 employees ["Employee/99"]"#, "remove Department/1 ranks [77]",
    ])
  mutating func nothing(line: String) throws {
    try fixture.observe("Department/1.tags", "Department/1.employees", "Department/1.ranks", "Department/1.size")
    #expect(try fixture.told(line) == [])
  }

  // MARK: Far sides

  @Test("A to-one that is set from its own side appends to the inverse, and leaves the one before")
  mutating func farSide() throws {
    try fixture.observe("Department/1.employees", "Department/2.employees", "Employee/3.department")
    #expect(
      try fixture.told(#"set Employee/3 department "Department/1""#) == [
        #"Department/1.employees insertion at 2 new=["Employee/3"]"#,
        #"Department/2.employees removal at 0 old=["Employee/3"]"#,
        #"Employee/3.department old="Department/2" new="Department/1""#,
      ])
  }

  @Test("A bulk insertion takes the members away from where they were, in one removal for each")
  mutating func bulk() throws {
    try fixture.observe("Department/1.employees", "Department/2.employees", "Employee/2.department")
    #expect(
      try fixture.told(#"insert Department/2 employees ["Employee/2","Employee/1"] @0,2"#) == [
        #"Employee/2.department old="Department/1" new="Department/2""#,
        #"Department/1.employees removal at 0,1 old=["Employee/1","Employee/2"]"#,
        #"Department/2.employees insertion at 0,2 new=["Employee/2","Employee/1"]"#,
      ])
  }

  @Test("Both sides of a relationship between many and many are told")
  mutating func manyToMany() throws {
    _ = try fixture.told("create Project/1 {}")
    _ = try fixture.told("create Project/2 {}")
    try fixture.observe("Department/1.projects", "Project/1.departments")
    #expect(
      try fixture.told(#"set Project/1 departments ["Department/2","Department/1"]"#) == [
        #"Department/1.projects insertion new=["Project/1"]"#,
        #"Project/1.departments old=[] new=["Department/2","Department/1"]"#,
      ])
    #expect(
      try fixture.told(#"assign Department/1 projects ["Project/2"]"#) == [
        #"Project/1.departments removal at 1 old=["Department/1"]"#,
        #"Department/1.projects replacement old=["Project/1"] new=["Project/2"]"#,
      ])
  }

  @Test("A far side that changes in more ways than one kind can say, in one operation, is a setting")
  mutating func twoWays() throws {
    _ = try fixture.told(#"set Employee/3 boss "Employee/2""#)
    try fixture.observe("Employee/2.reports")
    #expect(
      try fixture.told(#"patch Employee/1 {"boss":"Employee/2","reports":["Employee/3"]}"#) == [
        #"Employee/2.reports old=["Employee/3"] new=["Employee/1"]"#
      ])
  }

  @Test("A far side that a member leaves and comes back to tells only of the others, where their order is kept")
  mutating func comingBack() throws {
    _ = try fixture.told(#"set Employee/2 reports ["Employee/3","Employee/4"]"#)
    try fixture.observe("Employee/2.reports")
    #expect(
      try fixture.told(#"patch Employee/4 {"reports":["Employee/4","Employee/3"],"boss":"Employee/2"}"#) == [
        #"Employee/2.reports removal at 0 old=["Employee/3"]"#
      ])
  }

  @Test("A member that an object made in place takes away is no member afterwards")
  mutating func takenByNewMember() throws {
    _ = try fixture.told(#"set Employee/2 reports ["Employee/3","Employee/4"]"#)
    try fixture.observe("Employee/2.reports", "Employee/2.reports.@sum.salary", "Employee/3.boss")
    #expect(
      try fixture.told(#"insert Employee/2 reports [{"@ref":"Employee/9","reports":["Employee/3"]}]"#) == [
        #"Employee/3.boss old="Employee/2" new="Employee/9""#,
        #"Employee/2.reports.@sum.salary old=70 new=40"#,
        #"Employee/2.reports old=["Employee/3","Employee/4"] new=["Employee/4","Employee/9"]"#,
      ])
  }

  @Test("The changes of one operation are the exact mirror of its priors")
  mutating func mirror() throws {
    try fixture.observe(
      "Department/1.total", "Department/2.employees", "Employee/1.department", "Department/1.employees",
      options: .prior)
    let told = try fixture.told(#"insert Department/2 employees ["Employee/1","Employee/2"] @0,1"#)
    let priors = told.prefix { $0.hasSuffix(" prior") }
    #expect(priors.count == 4)
    #expect(told.dropFirst(4) == priors.map { $0.replacing(" prior", with: "") }.reversed()[...])
  }

  @Test("A JSON Patch that touches members sets the collection as a whole")
  mutating func jsonPatch() throws {
    try fixture.observe("Department/1.ranks")
    let patch = try JSONPatch(try Value(json: #"[{"op":"add","path":"/ranks/0","value":9}]"#))
    let commit = try fixture.model.commit(Transaction([.jsonPatch(try ref("Department/1"), patch)]))
    var told: [String] = []
    fixture.index.notify(CollectionOfOne(commit), of: fixture.model.state) { told += lines($0) }
    #expect(told == ["Department/1.ranks old=[1,2,3] new=[9,1,2,3]"])
  }
}
