import KeyValueModel
import TestKit
import Testing

@Suite("Any JSON")
struct JSONFuzzTests {
  private static let mutator = Mutator(
    [
      #"{"a":1,"b":[true,false,null],"c":{"d":"e"}}"#, #"[0,-0.0,1.5,1e300,-9223372036854775808,0.1]"#,
      #""\u0041\ud83d\ude00\"\\\/\b\f\n\r\t é😀""#, #" { "x" : [ ] , "y" : { } } "#, "12345678901234567890",
      #"{"":"","a\u0000b":[[[[1]]]]}"#, String(repeating: "[", count: 64) + String(repeating: "]", count: 64),
    ],
    pieces: [
      "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud83d", "\\ude00", "true", "false", "null", "1", "-", "e+",
      ".",
      "0", "1e400", "\"a\":", "\u{0}", "é", "\u{FEFF}", "//", "NaN", " ", "9007199254740993", "1E-400",
    ])

  @Test("Any bytes are a value that comes back from its text, or have a mistake at one of their places")
  func anyBytes() {
    let failure = Fuzzer("JSON", rounds: 20_000).run(Self.mutator) { bytes in
      do throws(JSONError) {
        let value = try Value(json: bytes)
        let text = value.json
        guard let back = try? Value(json: text) else { return "what was written is no JSON: \(text)" }
        return back.json == text ? nil : "it was written as \(text) and then as \(back.json)"
      } catch {
        return (0...bytes.count).contains(error.offset) ? nil : "the mistake is at \(error.offset) of \(bytes.count)"
      }
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }
}

@Suite("Any JSON Patch")
struct JSONPatchFuzzTests {
  private struct Input {
    var document: Value
    var patch: Value
  }

  private static let schema = "entities: {Note: {keys: {data: {type: json}, text: {type: string, maxLength: 5}}}}"
  private static let paths = [
    "", "/", "/a", "/a/b", "/a/0", "/a/-", "/l", "/l/0", "/l/1", "/l/-", "/l/00", "/l/2/x", "/~0", "/~1", "/~2", "a",
    "/a/b/c",
  ]

  private static func value(_ depth: Int, _ random: inout SplitMix64) -> Value {
    switch Int.random(in: 0..<(depth > 0 ? 6 : 4), using: &random) {
    case 0: .null
    case 1: .integer(.random(in: -2...2, using: &random))
    case 2: .string(["", "a", "b"].randomElement(using: &random) ?? "")
    case 3: .number(0.5)
    case 4: .array((0..<Int.random(in: 0..<4, using: &random)).map { _ in value(depth - 1, &random) })
    default: .object(members(depth - 1, &random))
    }
  }

  private static func members(_ depth: Int, _ random: inout SplitMix64) -> JSONObject {
    var object = JSONObject()
    for name in ["a", "b", "l", "~", "/", ""] where random.chance(40) { object[name] = value(depth, &random) }
    return object
  }

  private static func input(_ random: inout SplitMix64) -> Input {
    let operations = (0..<Int.random(in: 0...6, using: &random)).map { _ in
      var operation: JSONObject = [:]
      let names = ["add", "remove", "replace", "move", "copy", "test", "nope"]
      operation["op"] = random.chance(97) ? .string(names.randomElement(using: &random) ?? "") : value(1, &random)
      operation["path"] = random.chance(97) ? .string(paths.randomElement(using: &random) ?? "") : nil
      operation["from"] = random.chance(90) ? .string(paths.randomElement(using: &random) ?? "") : nil
      operation["value"] = random.chance(90) ? value(3, &random) : nil
      return Value.object(operation)
    }
    return Input(document: .object(members(3, &random)), patch: .array(operations))
  }

  @Test("A patch is its operations one after the other, or nothing")
  func steps() {
    let failure = Fuzzer("JSON patches", rounds: 10_000).run(
      make: { Self.input(&$0) }, describe: { "\($0.document.json) patched by \($0.patch.json)" },
      check: { try Self.check($0) })
    #expect(failure == nil, "\(failure?.description ?? "")")
  }

  private static func check(_ input: Input) throws -> String? {
    guard let patch = try? JSONPatch(input.patch) else { return nil }
    guard case .array(let operations) = input.patch else { return "a patch is no array" }
    let before = input.document.json
    var expected: Value? = input.document
    for operation in operations {
      expected = expected.flatMap { try? JSONPatch(.array([operation])).applied(to: $0) }
    }
    do throws(JSONPatchError) {
      let result = try patch.applied(to: input.document)
      if result.json != expected?.json {
        return "the whole makes \(result.json), the steps \(expected?.json ?? "none")"
      }
      if (try? Value(json: result.json))?.json != result.json { return "it makes \(result.json)" }
    } catch {
      if expected != nil { return "the whole fails, the steps make \(expected?.json ?? "")" }
      let index = error.operationIndex ?? -1
      if !operations.indices.contains(index) { return "the failed operation is \(index) of \(operations.count)" }
    }
    return input.document.json == before ? nil : "the document is another"
  }

  @Test("A patch of an object that fails leaves no trace in the model")
  func objects() throws {
    let schema = try Schema(yaml: Self.schema)
    let note = try ref("Note/1")
    let failure = Fuzzer("patched objects", rounds: 3_000).run(
      make: { Self.input(&$0) }, describe: { "\($0.document.json) patched by \($0.patch.json)" },
      check: { input in
        var model = Model(schema: schema)
        _ = try model.commit(Transaction([.create(note, ["data": input.document, "text": .string("t")])]))
        guard case .array(let operations) = input.patch else { return "a patch is no array" }
        let inside = operations.map { operation -> Value in
          guard case .object(var members) = operation else { return operation }
          for name in ["path", "from"] {
            if case .string(let path)? = members[name] { members[name] = .string("/data\(path)") }
          }
          return .object(members)
        }
        guard let patch = try? JSONPatch(.array(inside)) else { return nil }
        let before = portrayal(of: model)
        do throws(ModelError) {
          _ = try model.commit(Transaction([.jsonPatch(note, patch)]))
          return nil
        } catch {
          return portrayal(of: model) == before ? nil : "a refused patch left a trace: \(error.detail)"
        }
      })
    #expect(failure == nil, "\(failure?.description ?? "")")
  }
}
