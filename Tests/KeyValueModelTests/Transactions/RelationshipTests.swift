import KeyValueModel
import Testing

@Suite("Relationships")
struct RelationshipTests {
  static let schema = """
    entities:
      Desk: {keys: {user: {toOne: Worker, inverse: desk}, spare: {toOne: Desk}}}
      Worker:
        keys:
          desk: {toOne: Desk, inverse: user}
          spouse: {toOne: Worker, inverse: spouse}
          mentor: {toOne: Worker, inverse: pupil}
          pupil: {toOne: Worker, inverse: mentor}
      Boss: {extends: Worker}
    """

  var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    for name in ["Desk/1", "Desk/2", "Worker/1", "Worker/2", "Worker/3", "Boss/1"] { try fixture.create(name) }
  }

  @Test(
    "Replaced by the same body again, an object that names itself stays as it is, and lets others go",
    arguments: [
      (#"{"boss":"Person/1"}"#, "Person/1", "[\"Person/1\"]"),
      (#"{"reports":["Person/1"]}"#, "Person/1", "[\"Person/1\"]"),
      (#"{"next":"Person/1"}"#, "null", "[]"), ("{}", "null", "[]"),
    ])
  func replaced(body: String, boss: String, reports: String) throws {
    var fixture = try Fixture(
      """
      entities:
        Person:
          keys:
            boss: { toOne: Person, inverse: reports }
            reports: { toMany: Person, ordered: true, inverse: boss }
            next: { toOne: Person, inverse: previous }
            previous: { toOne: Person, inverse: next }
      """)
    for round in 0..<3 {
      try fixture.put("Person/1", body)
      #expect(try fixture.value("Person/1", "boss") == (boss == "null" ? boss : "\"\(boss)\""), "round \(round)")
      #expect(try fixture.value("Person/1", "reports") == reports, "round \(round)")
      let pair = body.contains("next") ? "\"Person/1\"" : "null"
      #expect(try fixture.value("Person/1", "next") == pair && fixture.value("Person/1", "previous") == pair)
      // One more report, which the next replacement removes.
      try fixture.put("Person/2", #"{"boss":"Person/1"}"#)
    }
  }

  /// Returns all objects with the value of a key, if it is not null.
  private func pairs(_ key: String) throws -> [String] {
    var found: [String] = []
    for entity in fixture.model.schema.entities where entity.indexOfKey(key) != nil {
      for reference in fixture.model.state.references(of: entity) where reference.entity == entity.name {
        let value = try fixture.value(reference.text, key)
        if value != "null" { found.append("\(reference) \(value.dropFirst().dropLast())") }
      }
    }
    return found.sorted()
  }

  @Test(
    "Setting one side of a pair of keys sets the other, and lets go whoever was there before",
    arguments: [
      (["Worker/1.desk=Desk/1"], ["Worker/1 Desk/1"]), (["Desk/1.user=Worker/1"], ["Worker/1 Desk/1"]),
      (["Worker/1.desk=Desk/1", "Worker/1.desk=Desk/2"], ["Worker/1 Desk/2"]),
      (["Worker/1.desk=Desk/1", "Worker/2.desk=Desk/1"], ["Worker/2 Desk/1"]),
      (["Worker/1.desk=Desk/1", "Worker/2.desk=Desk/2", "Worker/1.desk=Desk/2"], ["Worker/1 Desk/2"]),
      (["Worker/1.desk=Desk/1", "Worker/2.desk=Desk/2", "Desk/1.user=Worker/2"], ["Worker/2 Desk/1"]),
      (["Worker/1.desk=Desk/1", "Desk/1.user=null"], []), (["Worker/1.desk=Desk/1", "Worker/1.desk=null"], []),
      (["Worker/1.desk=Desk/1", "Worker/1.desk=Desk/1"], ["Worker/1 Desk/1"]),
      (["Boss/1.desk=Desk/1", "Desk/1.user=Boss/1"], ["Boss/1 Desk/1"]),
      (["Worker/1.desk=Desk/1", "Boss/1.desk=Desk/1"], ["Boss/1 Desk/1"]), (["Worker/1.desk=null"], []),
    ])
  mutating func pairing(sets: [String], result: [String]) throws {
    try apply(sets)
    #expect(try pairs("desk") == result)
    let mirrored = try pairs("user").map { $0.split(separator: " ").reversed().joined(separator: " ") }
    #expect(mirrored.sorted() == result)
  }

  @Test(
    "A key that is its own inverse pairs objects of one kind, also one with itself",
    arguments: [
      (["Worker/1.spouse=Worker/2"], ["Worker/1 Worker/2", "Worker/2 Worker/1"]),
      (["Worker/1.spouse=Worker/2", "Worker/2.spouse=Worker/3"], ["Worker/2 Worker/3", "Worker/3 Worker/2"]),
      (
        ["Worker/1.spouse=Worker/2", "Worker/3.spouse=Boss/1", "Worker/1.spouse=Worker/3"],
        ["Worker/1 Worker/3", "Worker/3 Worker/1"]
      ),
      (["Worker/1.spouse=Worker/2", "Worker/2.spouse=null"], []),
      (["Worker/1.spouse=Worker/1"], ["Worker/1 Worker/1"]),
      (["Worker/1.spouse=Worker/1", "Worker/1.spouse=Worker/2"], ["Worker/1 Worker/2", "Worker/2 Worker/1"]),
      (["Worker/1.spouse=Worker/1", "Worker/2.spouse=Worker/1"], ["Worker/1 Worker/2", "Worker/2 Worker/1"]),
      (["Worker/1.spouse=Worker/2", "Worker/1.spouse=Worker/1"], ["Worker/1 Worker/1"]),
      (["Worker/1.spouse=Worker/1", "Worker/1.spouse=null"], []),
      (["Worker/1.spouse=Worker/2", "Worker/1.spouse=Worker/2"], ["Worker/1 Worker/2", "Worker/2 Worker/1"]),
    ])
  mutating func selfInverse(sets: [String], result: [String]) throws {
    try apply(sets)
    #expect(try pairs("spouse") == result)
  }

  @Test(
    "Two keys of one entity that are each other's inverse agree",
    arguments: [
      (["Worker/1.mentor=Worker/2"], ["Worker/1 Worker/2"]), (["Worker/1.mentor=Worker/1"], ["Worker/1 Worker/1"]),
      (["Worker/1.mentor=Worker/1", "Worker/1.mentor=Worker/2"], ["Worker/1 Worker/2"]),
      (["Worker/1.mentor=Worker/1", "Worker/2.pupil=Worker/1"], ["Worker/1 Worker/2"]),
      (["Worker/1.mentor=Worker/2", "Worker/2.mentor=Worker/1"], ["Worker/1 Worker/2", "Worker/2 Worker/1"]),
      (
        ["Worker/1.mentor=Worker/2", "Worker/1.pupil=Worker/2", "Worker/3.mentor=Worker/1"],
        ["Worker/1 Worker/2", "Worker/3 Worker/1"]
      ),
    ])
  mutating func mentors(sets: [String], result: [String]) throws {
    try apply(sets)
    #expect(try pairs("mentor") == result)
    let mirrored = try pairs("pupil").map { $0.split(separator: " ").reversed().joined(separator: " ") }
    #expect(mirrored.sorted() == result)
  }

  @Test("An object that is made as its own mentor is its own pupil, whatever the body leaves out")
  mutating func ownMentor() throws {
    for text in [#"{"mentor":"Worker/9"}"#, #"{"pupil":"Worker/9"}"#, #"{"pupil":"Worker/9","mentor":"Worker/9"}"#] {
      try fixture.create("Worker/9", text)
      #expect(try fixture.value("Worker/9", "mentor") == "\"Worker/9\"")
      #expect(try fixture.value("Worker/9", "pupil") == "\"Worker/9\"")
      // The same as a replacement of an object that had others before.
      try fixture.put("Worker/9", #"{"mentor":"Worker/1","pupil":"Worker/2"}"#)
      try fixture.put("Worker/9", text)
      #expect(try fixture.value("Worker/9", "mentor") == "\"Worker/9\"")
      #expect(try fixture.value("Worker/9", "pupil") == "\"Worker/9\"")
      #expect(try fixture.value("Worker/1", "pupil") == "null")
      try fixture.delete("Worker/9")
    }
  }

  @Test("Setting the far side moves the revision of every object that it touches, and no other")
  mutating func revisions() throws {
    try apply(["Worker/1.desk=Desk/1", "Worker/2.desk=Desk/2"])
    try apply(["Worker/1.desk=Desk/2"])
    let revision = fixture.model.revision
    for (name, isTouched) in [
      ("Worker/1", true), ("Worker/2", true), ("Desk/1", true), ("Desk/2", true), ("Boss/1", false),
    ] {
      #expect((fixture.model.state.record(try ref(name))?.revision == revision) == isTouched)
    }
  }

  @Test("A relationship takes objects of its entity and of what extends it, and no others")
  mutating func entities() throws {
    let worker = try ref("Worker/1")
    try fixture.set("Worker/1", "mentor", "\"Boss/1\"")
    #expect(try fixture.error([.set(worker, keyPath: "mentor", .string("Desk/1"))]).code == .wrongEntity)
    #expect(try fixture.error([.set(worker, keyPath: "mentor", .string("Nobody/1"))]).code == .wrongEntity)
    #expect(try fixture.error([.set(worker, keyPath: "mentor", .string("Worker/99"))]).code == .invalidValue)
    #expect(try fixture.error([.set(worker, keyPath: "mentor", .reference(try ref("Desk/1")))]).code == .wrongEntity)
  }

  @Test("A far side that must have a value cannot lose it")
  mutating func requiredFarSide() throws {
    var fixture = try Fixture(
      """
      entities:
        Car: {keys: {plate: {toOne: Plate, inverse: car, optional: false}}}
        Plate: {keys: {car: {toOne: Car, inverse: plate}}}
      """)
    try fixture.create("Plate/1")
    try fixture.create("Car/1", #"{"plate":"Plate/1"}"#)
    try fixture.create("Plate/2")
    #expect(try fixture.error([.set(try ref("Plate/1"), keyPath: "car", .null)]).code == .nullNotAllowed)
    // In the other direction the car gets another plate, and does not lose its plate.
    try fixture.set("Plate/2", "car", "\"Car/1\"")
    #expect(try fixture.value("Car/1", "plate") == "\"Plate/2\"")
    #expect(try fixture.value("Plate/1", "car") == "null")
    try fixture.create("Car/2", #"{"plate":"Plate/1"}"#)
    #expect(try fixture.error([.set(try ref("Car/1"), keyPath: "plate", .string("Plate/1"))]).code == .nullNotAllowed)
    #expect(try fixture.error([.create(try ref("Car/3"), [:])]).code == .nullNotAllowed)
  }

  private mutating func apply(_ sets: [String]) throws {
    for text in sets {
      let parts = text.split(separator: "=").map(String.init)
      let left = parts[0].split(separator: ".").map(String.init)
      try fixture.set(left[0], left[1], parts[1] == "null" ? "null" : "\"\(parts[1])\"")
      #expect(inconsistencies(in: fixture.model.state).isEmpty)
    }
  }
}
