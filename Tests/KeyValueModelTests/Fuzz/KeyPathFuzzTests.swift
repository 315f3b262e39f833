import KeyValueModel
import TestKit
import Testing

@Suite("Any key path")
struct KeyPathFuzzTests {
  private static let schema = """
    entities:
      Person:
        keys:
          name: {type: string}
          tags: {type: json}
          age: {type: integer}
          home: {toOne: Place, inverse: people}
          both: {computed: "name + string(age)", type: string}
      Place:
        keys:
          size: {type: number}
          people: {toMany: Person, ordered: true, inverse: home}
          names: {computed: people.@distinctUnionOfObjects.name}
          oldest: {computed: people.@max.age}
    """
  private static let mutator = Mutator(
    [
      "name", "home.size", "home.people.@count", "home.people.@sum.age", "people.@unionOfObjects.name",
      "people.home.people.@distinctUnionOfArrays.tags", "home.names", "people.@max.both", "home.people.home.size",
      Array(repeating: "home.people", count: 15).joined(separator: "."),
    ],
    pieces: [
      "name", "tags", "age", "home", "both", "size", "people", "names", "oldest", ".", "..", "@count", "@sum", "@avg",
      "@min", "@max", "@unionOfObjects", "@unionOfArrays", "@distinctUnionOfArrays", "@", "_", "1", "é", "\u{0}", " ",
    ])

  private static func model() throws -> Model {
    var fixture = try Fixture(schema)
    try fixture.create("Place/1", #"{"size":1.5}"#)
    for number in 1...3 {
      try fixture.create(
        "Person/\(number)", #"{"name":"p\#(number)","age":\#(number),"home":"Place/1","tags":[1,[2]]}"#)
    }
    return fixture.model
  }

  @Test(
    "Any text is a path that stays the same when it is read again and whose value is JSON, or a mistake that names it")
  func anyText() throws {
    let model = try Self.model()
    let objects = try [ref("Person/1"), ref("Place/1")]
    let failure = Fuzzer("key paths", rounds: 20_000).run(texts: Self.mutator) { text in
      for reference in objects {
        let entity = try model.state.requireRecord(reference).entity
        do throws(ModelError) {
          let path = try model.schema.resolve(text, from: entity)
          if path.text != text { return "it calls itself \(path.text)" }
          if try model.schema.resolve(path.text, from: entity) != path { return "it is another the second time" }
          if path.keys.isEmpty || path.keys.count > ModelKeyPath.maximumLength {
            return "it has \(path.keys.count) keys"
          }
          // Each further to-many multiplies the objects that are read. A server limits that, the model does not.
          if text.split(separator: ".").filter({ $0 == "people" }).count > 3 { continue }
          let value = model.state.value(of: reference, at: path)
          guard let back = try? Value(json: value.json) else { return "its value is \(value.json)" }
          if back.json != value.json { return "its value is \(value.json), read again \(back.json)" }
        } catch {
          let codes: [ModelError.Code] = [.malformedKeyPath, .undefinedKey, .notACollection, .invalidValue]
          if !codes.contains(error.code) { return "the mistake is \(error.code)" }
          if error.keyPath != text { return "the mistake names \(error.keyPath ?? "nothing")" }
        }
      }
      return nil
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }
}
