import Support
import TestKit
import Testing

@testable import KeyValueModel

@Suite("References and dates")
struct ReferenceTests {
  @Test(
    "Entity and id make a reference",
    arguments: ["A/1", "Person/a.b_c~d-E9", "P_1/...", "a/.a", "Person/" + String(repeating: "x", count: 128)])
  func valid(text: String) throws {
    let reference = try ref(text)
    #expect("\(reference.entity)/\(reference.id)" == text)
    #expect(reference.description == text)
  }

  @Test(
    "A text without an entity and an id is not a reference",
    arguments: [
      "", "/", "A/", "/1", "A", "A/.", "A/..", "1/1", "_A/1", "A/1/2", "A/é", "É/1", "A/a b", "A/a%20", "A/1?", "A-B/1",
      "Person/" + String(repeating: "x", count: 129), "A//1", " A/1", "A/1\n",
    ])
  func invalid(text: String) {
    #expect(Reference(text) == nil)
  }

  @Test("References are ordered by their bytes")
  func order() throws {
    let texts = ["A/1", "A/10", "A/2", "A/a", "AB/1", "B/1", "a/1"]
    #expect(try texts.reversed().map(ref).sorted().map(\.text) == ["A/1", "A/10", "A/2", "A/a", "AB/1", "B/1", "a/1"])
  }

  @Test(
    "Dates of RFC 3339 are dates",
    arguments: [
      "2010-03-01", "2012-02-29", "2000-02-29", "2010-03-01T09:30:00Z", "2010-03-01t09:30:00z", "0000-01-01",
      "2010-03-01T09:30:00.123456789Z", "2010-03-01T00:59:60+01:00", "2010-12-31T00:00:00-00:00",
    ])
  func dates(text: String) {
    #expect(RFC3339.isDate(text))
  }

  @Test(
    "Other texts are no dates",
    arguments: [
      "", "2010", "2010-3-1", "2010-13-01", "2010-00-01", "2010-02-29", "1900-02-29", "2010-04-31", "2010-01-00",
      "2010-03-01T", "2010-03-01T09:30", "2010-03-01T09:30:00", "2010-03-01 09:30:00Z", "2010-03-01T24:00:00Z",
      "2010-03-01T09:60:00Z", "2010-03-01T09:30:61Z", "2010-03-01T09:30:00.Z", "2010-03-01T09:30:00+1:00",
      "2010-03-01T09:30:00+24:00", "2010-03-01T09:30:00+01:60", "2010-03-01T09:30:00Zx", "20100301", "２０１０-03-01",
      "2010-03-01Z", "2010-03-01T09:30:00+01:000",
    ])
  func noDates(text: String) {
    #expect(!RFC3339.isDate(text))
  }

  @Test("Many are sorted as any two of them compare")
  func sorting() throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<200 {
      let letters = Array(["ab", "a.-~", "0123456789"].randomElement(using: &random) ?? "a")
      let references = (0..<Int.random(in: 0..<60, using: &random)).compactMap { _ in
        let length = Int.random(in: 1...(random.chance(30) ? 20 : 9), using: &random)
        let beginning = random.chance(30) ? "abababababababab" : ""
        return Reference(
          entity: "Item", id: beginning + String((0..<length).compactMap { _ in letters.randomElement(using: &random) })
        )
      }
      #expect(references.sortedWithinEntity() == references.sorted(), "seed \(seed)")
    }
  }

  @Test("The references of an entity come in order, with those of its subclasses")
  func family() throws {
    var fixture = try Fixture(
      """
      entities:
        B: { keys: { x: { type: integer, indexed: true } } }
        BA: { extends: B }
        A: { extends: BA }
        B_: { extends: B }
      """)
    for name in ["B_/1", "BA/2", "BA/10", "B/z", "A/9", "B/a", "BA/1"] { try fixture.create(name, #"{"x":1}"#) }
    let (state, entity) = (fixture.model.state, fixture.model.schema.entities[0])
    #expect(state.references(of: entity) == state.unorderedReferences(of: entity).sorted())
    #expect(state.references(of: entity).map(\.text) == ["A/9", "B/a", "B/z", "BA/1", "BA/10", "BA/2", "B_/1"])
    #expect(state.references(of: entity, whereKey: 0, is: .integer(1)) == state.references(of: entity))
  }
}
