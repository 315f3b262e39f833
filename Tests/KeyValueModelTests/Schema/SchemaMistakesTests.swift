import KeyValueModel
import Testing

@Suite("Mistakes in a schema")
struct SchemaMistakesTests {
  /// A schema file whose first mistake is at the `¶` in the text.
  struct Mistake: Sendable, CustomTestStringConvertible {
    let fragment: String
    let marked: String
    var count = 1

    var testDescription: String { fragment }

    init(_ fragment: String, _ marked: String, count: Int = 1) {
      (self.fragment, self.marked, self.count) = (fragment, marked, count)
    }

    /// Creates a mistake in one key of an entity `A`.
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
      .init("a schema file must be a mapping", "¶- a"), .init("a schema file must be a mapping", "¶hello"),
      .init("needs 'entities:'", "¶{}"), .init("'entitys' is not a word", "¶entitys: {}", count: 2),
      .init("'entities' must be a mapping", "entities: ¶[]"), .init("'entities' must be a mapping", "entities: ¶A"),
      .init("'version' is not a word", "entities: {}\n¶version: 1"),
      .init("the '{' that begins on line 1, column 11, is not closed, or a ',' is missing", "entities: {A: {}\n¶"),
      .init("a tab cannot indent a line; use spaces", "entities:\n¶\tA: {}"),
      .init("a tab cannot indent a line; use spaces", "entities:\n  A:\n  ¶\tkeys: {}"),
      .init("a second document begins here", "entities: {}\n¶---\nentities: {}"),
      .init("no '&' above has this name", "entities: {A: ¶*missing}"),
      .init("a text with ': ' in it needs quotation marks", "entities:\n  A:\n    keys: x¶: {}"),
      .init("the line above may lack its ':'", "entities:\n  A\n  B¶: {}"),
      .init("a quotation mark within a quoted text is written twice", "entities: {}\naccess: 'it'¶s'"),
      .init("a ':' is missing after this name", "entities: {}\n¶A"),
      .init("the quotation mark that opens here is not closed", "entities:\n  ¶\"A: {}\n"),
      .init("a text cannot begin with '@'", "entities:\n  ¶@A: {}"),
      .init("the escape sequence is not known", "entities: {\"A¶\\d\": {}}"),
      .init("matches no line of the part that begins on line 1, column 1,", "entities:\n  A: {}\n ¶B: {}"),
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
      .init("the entity 'A' must be a mapping", "entities:\n  A: ¶[]"),
      .init("the entity 'A' must be a mapping", "entities: {A: ¶x}"),
      .init("'key' is not a word of an entity", "entities:\n  A:\n    ¶key: {}"),
      .init("'keys' must be a mapping", "entities:\n  A:\n    keys: ¶[x]"),
      .init("'extends' must be a text", "entities:\n  B: {}\n  A:\n    extends: ¶[B]"),
      .init("the schema has no entity 'B'", "entities:\n  A:\n    extends: ¶B"),
      .init("'A' extends itself", "entities:\n  A: {extends: ¶A}"),
      .init("'B' extends itself", "entities:\n  A: {extends: ¶B}\n  B: {extends: A}", count: 2),
      // An entity that extends an invalid one is not a second mistake.
      .init(
        "the schema has no entity 'X'",
        "entities:\n  A: {extends: ¶X}\n  C: {keys: {a: {toOne: A}}}\n  B: {extends: A}",
        count: 2),
      .init("'display' must be a list", "entities:\n  A: {display: ¶x, keys: {x: {type: string}}}"),
      .init("'display' must be a text", "entities:\n  A: {display: [¶[x]], keys: {x: {type: string}}}"),
      .init("display: A has no key 'y'", "entities:\n  A: {display: [x, ¶y], keys: {x: {type: string}}}"),
      .init("display: '@count' in", "entities:\n  A: {display: [¶x.@count], keys: {x: {type: string}}}"),
      .init("follows a value", "entities:\n  A: {display: [¶x.y], keys: {x: {type: json}}}"),
    ])
  func entities(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Keys",
    arguments: [
      Mistake("a key's name is", key: "¶1x: {type: string}"), .init("a key's name is", key: "¶a.b: {type: string}"),
      .init("a key's name is", key: "¶'@ref': {type: string}"), .init("a key's name is", key: "¶é: {type: string}"),
      .init("the key 'x' must be a mapping", key: "x: ¶string"),
      .init("needs a type, a toOne, a toMany or a computed", key: "¶x: {}"),
      .init("needs a type, a toOne, a toMany or a computed", key: "¶x: {optional: false}"),
      .init("must be either toOne or computed", key: "¶x: {toOne: A, computed: y}"),
      .init("'type' must be one of string, integer", key: "x: {type: ¶text}"),
      .init("'type' must be one of", key: "x: {type: ¶[string]}"),
      .init("'type' must be one of", key: "x: {type: ¶String}"),
      .init("'optional' must be true or false", key: "x: {type: string, optional: ¶maybe}"),
      .init("'optional' must be true or false", key: "x: {type: string, optional: ¶yes}"),
      .init("'notifies' must be one of always, changed, manual", key: "x: {type: string, notifies: ¶never}"),
      .init("'format' is not allowed for 'x'", key: "x: {type: string, ¶format: email}"),
      .init("'inverse' is not allowed for 'x'", key: "x: {type: string, ¶inverse: y}"),
      .init("'delete' is not allowed for 'x'", key: "x: {type: string, ¶delete: deny}"),
      .init("'default' is not allowed for 'x'", key: "x: {toOne: A, ¶default: A/1}"),
      .init("'type' is not allowed for 'x'", key: "x: {toOne: A, ¶type: string}"),
      .init("'optional' is not allowed for 'x'", key: "x: {computed: x, ¶optional: true}"),
      .init("'ordered' is not allowed for 'x'", key: "x: {toOne: A, ¶ordered: true}"),
      .init("'indexed' must be true or false", key: "x: {type: string, indexed: ¶maybe}"),
      .init("'indexed' is not allowed for 'x'", key: "x: {computed: x, ¶indexed: true}"),
      .init("'computed' must be a text", key: "x: {computed: ¶[a]}"),
    ])
  func keys(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Collections",
    arguments: [
      Mistake("'toMany' must be a text", key: "x: {toMany: ¶[A]}"),
      .init("'ordered' must be true or false", key: "x: {toMany: A, ordered: ¶maybe}"),
      .init("must be either toOne or toMany", key: "¶x: {toOne: A, toMany: A}"),
      .init("must be either toMany or computed", key: "¶x: {toMany: A, computed: y}"),
      .init("'type' is not allowed for 'x'", key: "x: {toMany: A, ¶type: string}"),
      .init("'default' is not allowed for 'x'", key: "x: {toMany: A, ¶default: []}"),
      .init("'default' is not allowed for 'x'", key: "x: {toMany: string, ¶default: [a]}"),
      .init("'optional' is not allowed for 'x'", key: "x: {toMany: A, ¶optional: false}"),
      .init("'optional' is not allowed for 'x'", key: "x: {toMany: string, ¶optional: true}"),
      .init("'indexed' is not allowed for 'x'", key: "x: {toMany: A, ¶indexed: true}"),
      .init("'minimum' is not allowed for 'x'", key: "x: {toMany: A, ¶minimum: 1}"),
      .init("'inverse' is not allowed for 'x'", key: "x: {toMany: string, ¶inverse: x}"),
      .init("'delete' is not allowed for 'x'", key: "x: {toMany: json, ¶delete: cascade}"),
      .init("'minimum' is only for integer and number", key: "x: {toMany: string, minimum: ¶1}"),
      .init("'pattern' is only for string", key: "x: {toMany: number, pattern: ¶a}"),
      .init("the maximum is less than the minimum", key: "x: {toMany: integer, minimum: 2, maximum: ¶1}"),
      .init("the enum's \"c\" has 1 characters, fewer", key: "x: {toMany: string, minLength: 2, enum: [aa, ¶c]}"),
      .init(
        "display: the path goes on behind the collection 'x'",
        "entities:\n  A: {display: [¶x.y], keys: {x: {toMany: A}, y: {type: json}}}"),
      .init(
        "display: the path goes on behind the collection 'x'",
        "entities:\n  A: {display: [¶x.x.@count], keys: {x: {toMany: A}}}"),
    ])
  func collections(mistake: Mistake) throws {
    try Self.check(mistake)
  }

  @Test(
    "Constraints and defaults",
    arguments: [
      Mistake("'minimum' is only for integer and number", key: "x: {type: string, minimum: ¶1}"),
      .init("'maximum' is only for integer and number", key: "x: {type: date, maximum: ¶1}"),
      .init("'minimum' must be an integer", key: "x: {type: integer, minimum: ¶0.5}"),
      .init("'maximum' must be a number", key: "x: {type: number, maximum: ¶big}"),
      .init("the maximum is less than the minimum", key: "x: {type: number, minimum: 2, maximum: ¶1}"),
      .init("'minLength' is only for string", key: "x: {type: integer, minLength: ¶1}"),
      .init("'pattern' is only for string", key: "x: {type: date, pattern: ¶a}"),
      .init("'minLength' must be a whole number", key: "x: {type: string, minLength: ¶-1}"),
      .init("'maxLength' must be a whole number", key: "x: {type: string, maxLength: ¶1.5}"),
      .init("maxLength is less than minLength", key: "x: {type: string, minLength: 2, maxLength: ¶1}"),
      .init("'pattern' is not a regular expression", key: "x: {type: string, pattern: ¶'('}"),
      .init("'pattern' is not a regular expression", key: "x: {type: string, pattern: ¶'(?=a)b'}"),
      .init("'pattern' is not a regular expression", key: "x: {type: string, pattern: ¶'(a)\\1'}"),
      .init("'enum' must be a list", key: "x: {type: string, enum: ¶a}"),
      .init("'enum' must be a list", key: "x: {type: string, enum: ¶[]}"),
      .init("the enum's \"b\" must be an integer", key: "x: {type: integer, enum: [1, ¶b]}"),
      .init("the enum's 3 is 3, over the maximum", key: "x: {type: integer, maximum: 2, enum: [1, ¶3]}"),
      .init("the default must be an integer", key: "x: {type: integer, default: ¶'1'}"),
      .init("JSON has no number '.inf'", key: "x: {type: number, default: ¶.inf}"),
      .init("JSON has no number '-.INF'", key: "x: {type: json, default: ¶-.INF}"),
      .init("JSON has no number '.nan'", key: "x: {type: json, default: {a: [1, ¶.nan]}}"),
      .init("JSON has no number '.inf'", key: "x: {type: number, maximum: ¶.inf}"),
      .init("JSON has no number '.NaN'", key: "x: {type: json, enum: [1, ¶.NaN]}"),
      .init("the number '1e999' is too large", key: "x: {type: json, default: ¶1e999}"),
      .init("'x' does not fit the tag !!int", key: "x: {type: json, default: ¶!!int x}"),
      .init("declared twice: 1", key: "x: {type: json, default: {1: a, ¶'1': b}}"),
      .init("a name in an object must be a text", key: "x: {type: json, default: {? ¶[a] : b}}"),
      .init("the default must be a boolean", key: "x: {type: boolean, default: ¶0}"),
      .init("the default must be a string, not null", key: "x: {type: string, default: ¶null}"),
      .init("the default must be a string, not an array", key: "x: {type: string, default: ¶[a]}"),
      .init("the default must be a date", key: "x: {type: date, default: ¶2010-02-30}"),
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
    #expect(error.rendered(file: "s.yaml").hasPrefix("s.yaml:4:17: error: 'type' must be one of"))
    #expect(error.rendered(file: "s.yaml").split(separator: "\n").count == 4)
  }
}
