import Testing

@testable import keyway

@Suite("Ids that different texts make")
struct KnownIDsTests {
  @Test("other texts with the id of an earlier line are refused, and equal ones are not")
  func collisions() throws {
    var ids = KnownIDs()
    try ids.insert("A-1", of: ["A 1"], line: 2)
    try ids.insert("A-1", of: ["A 1"], line: 3)
    #expect(throws: InvalidCell(reason: "“A-1” makes the id A-1, which line 2 has made of “A 1”")) {
      try ids.insert("A-1", of: ["A-1"], line: 4)
    }
    try ids.insert("1-2-3", of: ["1-2", "3"], line: 5)
    #expect(throws: InvalidCell(reason: "“1, 2-3” makes the id 1-2-3, which line 5 has made of “1-2, 3”")) {
      try ids.insert("1-2-3", of: ["1", "2-3"], line: 6)
    }
  }

  @Test("only the last ids are remembered, and none that nothing else makes")
  func memory() throws {
    var ids = KnownIDs(bytes: 2_000)
    try ids.insert("A-1", of: ["A 1"], line: 1)
    for line in 2...1_000 { try ids.insert("\(line)-0", of: ["\(line)", "0"], line: line) }
    #expect(throws: InvalidCell.self) { try ids.insert("A-1", of: ["A-1"], line: 1_001) }
    for line in 1_002...1_100 { try ids.insert("\(line)-0", of: ["\(line) 0"], line: line) }
    try ids.insert("A-1", of: ["A-1"], line: 1_101)
  }
}
