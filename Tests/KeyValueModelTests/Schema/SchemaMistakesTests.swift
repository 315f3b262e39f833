import KeyValueModel
import Testing

@Suite("Mistakes in a schema")
struct SchemaMistakesTests {
  /// A file whose mistake, or the first of them, stands where the text has a `¶`.
  struct Mistake: Sendable, CustomTestStringConvertible {
    let fragment: String
    let marked: String
    var count = 1

    var testDescription: String { fragment }

    init(_ fragment: String, _ marked: String, count: Int = 1) {
      (self.fragment, self.marked, self.count) = (fragment, marked, count)
    }

    /// One key of an entity `A`.
    init(_ fragment: String, key: String, count: Int = 1) {
      self.init(fragment, "entities:\n  A:\n    keys:\n      \(key)", count: count)
    }
  }

  static func check(_ mistake: Mistake) throws {
    let lines = mistake.marked.split(separator: "\n", omittingEmptySubsequences: false)
    let line = try #require(lines.firstIndex { $0.contains("¶") }, "the example has no mark")
    let column = try #require(lines[line].unicodeScalars.firstIndex(of: "¶"))
    let columnNumber = lines[line].unicodeScalars.distance(from: lines[line].startIndex, to: column) + 1
    let yaml = mistake.marked.replacing("¶", with: "")
    let error = try #require(throws: SchemaError.self) { try Schema(yaml: yaml) }
    let first = try #require(error.problems.first)
    #expect(first.message.contains(mistake.fragment), "\(error)")
    #expect((first.line, first.column) == (line + 1, columnNumber), "\(error)")
    #expect(error.problems.count == mistake.count, "\(error)")
  }

  @Test(
    "The file as a whole",
    arguments: [
      Mistake("the file is empty", "¶"), .init("the file is empty", "¶# nothing"),
      .init("a schema file wants names", "¶- a"), .init("a schema file wants names", "¶hello"),
      .init("wants 'entities:'", "¶{}"), .init("'entitys' is not a word", "¶entitys: {}", count: 2),
      .init("'entities' wants names", "entities: ¶[]"), .init("'entities' wants names", "entities: ¶A"),
      .init("'version' is not a word", "entities: {}\n¶version: 1"),
      .init("the '{' that begins on line 1, column 11, is not closed, or a ',' is missing", "entities: {A: {}\n¶"),
      .init("a tab cannot indent a line; use spaces", "entities:\n¶\tA: {}"),
      .init("a tab cannot indent a line; use spaces", "entities:\n  A:\n  ¶\tkeys: {}"),
      .init("a second document begins here", "entities: {}\n¶---\nentities: {}"),
      .init("no '&' above has this name", "entities: {A: ¶*missing}"),
      .init("a text with ': ' in it needs quotation marks", "entities:\n  A:\n    keys: x¶: {}"),
      .init("the line above may lack its ':'", "entities:\n  A\n  B¶: {}"),
      .init("a quotation mark within a text between such is written twice", "entities: {}\naccess: 'it'¶s'"),
      .init("a ':' is missing behind this name", "entities: {}\n¶A"),
      .init("the quotation mark that opens here is not closed", "entities:\n  ¶\"A: {}\n"),
      .init("a text cannot begin with '@'", "entities:\n  ¶@A: {}"),
      .init("the escape sequence is not known", "entities: {\"A¶\\d\": {}}"),
      .init("indented like none in the part that begins on line 1, column 1,", "entities:\n  A: {}\n ¶B: {}"),
      .init("the character U+0007 is not allowed", "entities:\n  A¶\u{7}: {}"),
      .init("the tag !foo is unknown", "entities:\n  A: {keys: {x: {type: json, default: ¶!foo x}}}"),
      .init("the tag !!binary is unknown", "entities:\n  A: {keys: {x: {type: json, default: ¶!!binary eA==}}}"),
      .init("the tag !foo is unknown", "entities:\n  A: {keys: ¶!foo {x: {type: json}}}"),
      .init("the tag !foo is unknown", "entities:\n  ¶!foo A: {}"),
      .init("declared twice: A; first on line 2", "entities:\n  A: {}\n  ¶A: {}"),
      .init("declared twice: A; first on line 2", "entities:\n  A: {}\n  B: {}\n  ¶A: {}\n  A: {}"),
      .init("declared twice: x", "entities:\n  A:\n    keys:\n      x: {type: string}\n      ¶x: {type: integer}"),
      .init("declared twice: type", "entities: {A: {keys: {x: {type: string, ¶type: string}}}}"),
      .init("declared twice: type", "entities: {A: {keys: {x: {type: string, ¶\"type\": string}}}}"),
      .init(
        "declared twice: A; first on line 3",
        "entities:\n  # A\n  A: {keys: {A: {type: string}}}\n  'BA': {extends: A}\n  ¶A: {}"),
    ])
  func file(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Entities",
    arguments: [
      Mistake("an entity's name is", "entities:\n  ¶1A: {}"), .init("an entity's name is", "entities:\n  ¶A-B: {}"),
      .init("an entity's name is", "entities: {¶_A: {}}"), .init("an entity's name is", "entities: {¶É: {}}"),
      .init("an entity's name is", "entities: {? ¶[A] : {}}"),
      .init("the entity 'A' wants names", "entities:\n  A: ¶[]"),
      .init("the entity 'A' wants names", "entities: {A: ¶x}"),
      .init("'key' is not a word of an entity", "entities:\n  A:\n    ¶key: {}"),
      .init("'keys' wants names", "entities:\n  A:\n    keys: ¶[x]"),
      .init("'extends' wants a text", "entities:\n  B: {}\n  A:\n    extends: ¶[B]"),
      .init("there is no entity 'B'", "entities:\n  A:\n    extends: ¶B"),
      .init("'A' extends itself", "entities:\n  A: {extends: ¶A}"),
      .init("'B' extends itself", "entities:\n  A: {extends: ¶B}\n  B: {extends: A}", count: 2),
      // What extends an entity that cannot be made is no second mistake.
      .init(
        "there is no entity 'X'", "entities:\n  A: {extends: ¶X}\n  C: {keys: {a: {toOne: A}}}\n  B: {extends: A}",
        count: 2),
      .init("'display' wants a list", "entities:\n  A: {display: ¶x, keys: {x: {type: string}}}"),
      .init("'display' wants a text", "entities:\n  A: {display: [¶[x]], keys: {x: {type: string}}}"),
      .init("display: A has no key 'y'", "entities:\n  A: {display: [x, ¶y], keys: {x: {type: string}}}"),
      .init("display: '@count' in", "entities:\n  A: {display: [¶x.@count], keys: {x: {type: string}}}"),
      .init("stands behind a value", "entities:\n  A: {display: [¶x.y], keys: {x: {type: json}}}"),
    ])
  func entities(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Keys",
    arguments: [
      Mistake("a key's name is", key: "¶1x: {type: string}"), .init("a key's name is", key: "¶a.b: {type: string}"),
      .init("a key's name is", key: "¶'@ref': {type: string}"), .init("a key's name is", key: "¶é: {type: string}"),
      .init("the key 'x' wants names", key: "x: ¶string"),
      .init("wants a type, a toOne, a toMany or a computed", key: "¶x: {}"),
      .init("wants a type, a toOne, a toMany or a computed", key: "¶x: {optional: false}"),
      .init("is either toOne or computed", key: "¶x: {toOne: A, computed: y}"),
      .init("'type' is one of string, integer", key: "x: {type: ¶text}"),
      .init("'type' is one of", key: "x: {type: ¶[string]}"), .init("'type' is one of", key: "x: {type: ¶String}"),
      .init("'optional' is true or false", key: "x: {type: string, optional: ¶maybe}"),
      .init("'notifies' is one of always, changed, manual", key: "x: {type: string, notifies: ¶never}"),
      .init("'format' does not go with 'x'", key: "x: {type: string, ¶format: email}"),
      .init("'inverse' does not go with 'x'", key: "x: {type: string, ¶inverse: y}"),
      .init("'delete' does not go with 'x'", key: "x: {type: string, ¶delete: deny}"),
      .init("'default' does not go with 'x'", key: "x: {toOne: A, ¶default: A/1}"),
      .init("'type' does not go with 'x'", key: "x: {toOne: A, ¶type: string}"),
      .init("'optional' does not go with 'x'", key: "x: {computed: x, ¶optional: true}"),
      .init("'ordered' does not go with 'x'", key: "x: {toOne: A, ¶ordered: true}"),
      .init("'indexed' is true or false", key: "x: {type: string, indexed: ¶maybe}"),
      .init("'indexed' does not go with 'x'", key: "x: {computed: x, ¶indexed: true}"),
      .init("'computed' wants a text", key: "x: {computed: ¶[a]}"),
    ])
  func keys(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Collections",
    arguments: [
      Mistake("'toMany' wants a text", key: "x: {toMany: ¶[A]}"),
      .init("'ordered' is true or false", key: "x: {toMany: A, ordered: ¶maybe}"),
      .init("is either toOne or toMany", key: "¶x: {toOne: A, toMany: A}"),
      .init("is either toMany or computed", key: "¶x: {toMany: A, computed: y}"),
      .init("'type' does not go with 'x'", key: "x: {toMany: A, ¶type: string}"),
      .init("'default' does not go with 'x'", key: "x: {toMany: A, ¶default: []}"),
      .init("'default' does not go with 'x'", key: "x: {toMany: string, ¶default: [a]}"),
      .init("'optional' does not go with 'x'", key: "x: {toMany: A, ¶optional: false}"),
      .init("'optional' does not go with 'x'", key: "x: {toMany: string, ¶optional: true}"),
      .init("'indexed' does not go with 'x'", key: "x: {toMany: A, ¶indexed: true}"),
      .init("'minimum' does not go with 'x'", key: "x: {toMany: A, ¶minimum: 1}"),
      .init("'inverse' does not go with 'x'", key: "x: {toMany: string, ¶inverse: x}"),
      .init("'delete' does not go with 'x'", key: "x: {toMany: json, ¶delete: cascade}"),
      .init("'minimum' goes with integer and number", key: "x: {toMany: string, minimum: ¶1}"),
      .init("'pattern' goes with string", key: "x: {toMany: number, pattern: ¶a}"),
      .init("the maximum is under the minimum", key: "x: {toMany: integer, minimum: 2, maximum: ¶1}"),
      .init("the enum's \"c\" has 1 characters, fewer", key: "x: {toMany: string, minLength: 2, enum: [aa, ¶c]}"),
      .init(
        "display: it goes on behind the collection 'x'",
        "entities:\n  A: {display: [¶x.y], keys: {x: {toMany: A}, y: {type: json}}}"),
      .init(
        "display: it goes on behind the collection 'x'",
        "entities:\n  A: {display: [¶x.x.@count], keys: {x: {toMany: A}}}"),
    ])
  func collections(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Constraints and defaults",
    arguments: [
      Mistake("'minimum' goes with integer and number", key: "x: {type: string, minimum: ¶1}"),
      .init("'maximum' goes with integer and number", key: "x: {type: date, maximum: ¶1}"),
      .init("'minimum' wants an integer", key: "x: {type: integer, minimum: ¶0.5}"),
      .init("'maximum' wants a number", key: "x: {type: number, maximum: ¶big}"),
      .init("the maximum is under the minimum", key: "x: {type: number, minimum: 2, maximum: ¶1}"),
      .init("'minLength' goes with string", key: "x: {type: integer, minLength: ¶1}"),
      .init("'pattern' goes with string", key: "x: {type: date, pattern: ¶a}"),
      .init("'minLength' wants a whole number", key: "x: {type: string, minLength: ¶-1}"),
      .init("'maxLength' wants a whole number", key: "x: {type: string, maxLength: ¶1.5}"),
      .init("maxLength is under minLength", key: "x: {type: string, minLength: 2, maxLength: ¶1}"),
      .init("'pattern' is no regular expression", key: "x: {type: string, pattern: ¶'('}"),
      .init("'pattern' is no regular expression", key: "x: {type: string, pattern: ¶'(?=a)b'}"),
      .init("'pattern' is no regular expression", key: "x: {type: string, pattern: ¶'(a)\\1'}"),
      .init("'enum' wants a list", key: "x: {type: string, enum: ¶a}"),
      .init("'enum' wants a list", key: "x: {type: string, enum: ¶[]}"),
      .init("the enum's \"b\" wants an integer", key: "x: {type: integer, enum: [1, ¶b]}"),
      .init("the enum's 3 is 3, over the maximum", key: "x: {type: integer, maximum: 2, enum: [1, ¶3]}"),
      .init("the default wants an integer", key: "x: {type: integer, default: ¶'1'}"),
      .init("JSON has no number '.inf'", key: "x: {type: number, default: ¶.inf}"),
      .init("JSON has no number '-.INF'", key: "x: {type: json, default: ¶-.INF}"),
      .init("JSON has no number '.nan'", key: "x: {type: json, default: {a: [1, ¶.nan]}}"),
      .init("JSON has no number '.inf'", key: "x: {type: number, maximum: ¶.inf}"),
      .init("JSON has no number '.NaN'", key: "x: {type: json, enum: [1, ¶.NaN]}"),
      .init("the number '1e999' is too large", key: "x: {type: json, default: ¶1e999}"),
      .init("'x' is not what the tag !!int says", key: "x: {type: json, default: ¶!!int x}"),
      .init("declared twice: 1", key: "x: {type: json, default: {1: a, ¶'1': b}}"),
      .init("a name in an object wants a text", key: "x: {type: json, default: {? ¶[a] : b}}"),
      .init("the default wants a boolean", key: "x: {type: boolean, default: ¶0}"),
      .init("the default wants a string and is null", key: "x: {type: string, default: ¶null}"),
      .init("the default wants a string and is an array", key: "x: {type: string, default: ¶[a]}"),
      .init("the default wants a date", key: "x: {type: date, default: ¶2010-02-30}"),
      .init("the default is 11, over the maximum 10", key: "x: {type: integer, maximum: 10, default: ¶11}"),
      .init("the default is -1, under the minimum 0", key: "x: {type: number, minimum: 0, default: ¶-1}"),
      .init("the default has 3 characters, more than", key: "x: {type: string, maxLength: 2, default: ¶abc}"),
      .init("the default has 1 characters, fewer", key: "x: {type: string, minLength: 2, default: ¶a}"),
      .init("the default does not match", key: "x: {type: string, pattern: '^[0-9]+$', default: ¶abc}"),
      .init("the default is \"c\", which is none of", key: "x: {type: string, enum: [a, b], default: ¶c}"),
    ])
  func constraints(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test("All mistakes are found, and told in the order of the file")
  func several() throws {
    let yaml = """
      entities:
        A:
          keys:
            b: {type: strin}
            a: {type: string, default: [1]}
        1: {}
        B: {extend: A}
      """
    let error = try #require(throws: SchemaError.self) { try Schema(yaml: yaml) }
    #expect(error.problems.map(\.line) == [4, 5, 6, 7])
    #expect(error.rendered(file: "s.yaml").hasPrefix("s.yaml:4:17: error: 'type' is one of"))
    #expect(error.rendered(file: "s.yaml").split(separator: "\n").count == 4)
  }
}
