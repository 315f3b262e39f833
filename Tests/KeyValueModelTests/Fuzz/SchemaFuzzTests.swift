import KeyValueModel
import TestKit
import Testing

@Suite("Any schema")
struct SchemaFuzzTests {
  private static let mutator = Mutator(
    [
      """
      entities:
        Person:
          keys:
            firstName: { type: string, optional: false, maxLength: 80, default: "" }
            email: { type: string, pattern: "^[^@ ]+@[^@ ]+$" }
            born: { type: date }
            fullName: { type: string, computed: "firstName + '!'" }
          display: [fullName]
        Employee:
          extends: Person
          keys:
            salary: { type: number, minimum: 0, maximum: 10.5, default: 0 }
            grade: { type: string, enum: [a, b] }
            department: { toOne: Department, inverse: employees }
      """ + "\n" + """
          Department:
            keys:
              employees: { toMany: Employee, ordered: true, inverse: department, delete: nullify }
              total: { type: number, computed: "employees.@sum.salary" }
              names: { computed: "employees.map(e, e.firstName)" }
        """,
      KeyPathTests.schema,
      """
      entities:
        Note: { keys: { text: { type: string, indexed: true }, parent: { toOne: Note, delete: cascade } } }
        Tag:
          keys:
            { notes: { toMany: Note }, n: { type: integer, notifies: changed }, m: { type: json, notifies: manual } }
      """,
    ],
    pieces: [
      "entities:", "keys:", "type: ", "string", "integer", "number", "boolean", "date", "json", "toOne: ", "toMany: ",
      "inverse: ", "computed: ", "extends: ", "display: ", "delete: ", "cascade", "deny", "optional: ", "default: ",
      "enum: ", "[", "]", "{", "}", ",", ":", "\n", "  ", "    ", "Person", "Employee", "Department", "salary", "null",
      "true", "1e308", "-1", "&a", "*a", "<<: ", "!!str ", "|", ">", "#", "'", "\"", "\t", "é", "ordered: true", "---",
      "employees.@sum.salary", "this", "minimum: ", "pattern: ", "maxLength: ",
    ])

  @Test("Any text is a schema that can be used, or has mistakes at its places, in their order")
  func anyText() {
    let failure = Fuzzer("schemas", rounds: 2_000).run(texts: Self.mutator) { text in
      do throws(SchemaError) {
        return Self.use(try Schema(yaml: text))
      } catch {
        return Self.complaint(about: error, in: text)
      }
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }

  /// Creates an empty object of each entity: a refused object leaves no trace, a created one can be read. Describes the
  /// first fault; nil if there is none.
  private static func use(_ schema: Schema) -> String? {
    var model = Model(schema: schema)
    for (number, entity) in schema.entities.enumerated() {
      guard let reference = Reference(entity: entity.name, id: "1") else { return "\(entity.name) names no objects" }
      let before = portrayal(of: model)
      do throws(ModelError) {
        _ = try model.commit(Transaction([.create(reference, [:])]))
        guard let record = model.state.record(reference) else { return "object \(number) is not there" }
        var bytes: [UInt8] = []
        _ = model.state.appendJSON(of: reference, record, to: &bytes)
        guard (try? Value(json: bytes)) != nil else { return "an object is \(String(decoding: bytes, as: UTF8.self))" }
      } catch {
        if portrayal(of: model) != before { return "a refused object left a trace: \(error.detail)" }
      }
    }
    return nil
  }

  private static func complaint(about error: SchemaError, in text: String) -> String? {
    let lines = text.split(omittingEmptySubsequences: false) { $0.isNewline }.count
    if error.problems.isEmpty { return "it is refused for no reason" }
    var last = (0, 0)
    for problem in error.problems {
      let place = (problem.line, problem.column)
      // A mistake at the end of the text is reported on the line after the last.
      if problem.line < 1 || problem.line > lines + 1 || problem.column < 1 { return "a mistake is at \(place)" }
      if place < last { return "the mistakes are out of order: \(error)" }
      if problem.message.isEmpty { return "a mistake says nothing" }
      last = place
    }
    return nil
  }
}
