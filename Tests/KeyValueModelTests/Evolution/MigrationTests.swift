import Testing

@testable import KeyValueModel

@Suite("Migrations")
struct MigrationTests {
  /// Schemas, objects and steps, with the expected objects or messages.
  struct Case: Sendable, CustomTestStringConvertible {
    let name: String
    let old: String
    let new: String
    let data: [String]
    let steps: [String]
    /// The number of objects that each step changes.
    var touched: [Int] = []
    let result: [String]

    var testDescription: String { name }
  }

  @Test(
    "Steps do what they say",
    arguments: [
      Case(
        name: "a key is renamed, in subclasses too", old: "A: {keys: {x: {type: string}}}, B: {extends: A}",
        new: "A: {keys: {y: {type: string}}}, B: {extends: A}", data: ["A/1 {\"x\":\"a\"}", "B/1 {\"x\":\"b\"}"],
        steps: ["rename A.x y"], touched: [2],
        result: [#"{"@ref":"A/1","@revision":3,"y":"a"}"#, #"{"@ref":"B/1","@revision":3,"y":"b"}"#]),
      Case(
        name: "an entity is renamed, and all who name its objects",
        old: "A: {keys: {one: {toOne: A}, all: {toMany: A, ordered: true}}}, B: {keys: {a: {toOne: A}}}",
        new: "B: {keys: {a: {toOne: C}}}, C: {keys: {one: {toOne: C}, all: {toMany: C, ordered: true}}}",
        data: ["A/2", "A/1 {\"one\":\"A/1\",\"all\":[\"A/2\",\"A/1\"]}", "B/1 {\"a\":\"A/2\"}", "B/2"],
        steps: ["rename A C"], touched: [3],
        result: [
          #"{"@ref":"B/1","@revision":5,"a":"C/2"}"#, #"{"@ref":"B/2","@revision":4,"a":null}"#,
          #"{"@ref":"C/1","@revision":5,"one":"C/1","all":["C/2","C/1"]}"#,
          #"{"@ref":"C/2","@revision":5,"one":null,"all":[]}"#,
        ]),
      Case(
        name: "two entities change names", old: "A: {keys: {x: {type: string}, b: {toOne: B}}}, B: {}",
        new: "B: {keys: {x: {type: string}, b: {toOne: A}}}, A: {}", data: ["B/1", "A/1 {\"x\":\"a\",\"b\":\"B/1\"}"],
        steps: ["rename A C", "rename B A", "rename C B"], touched: [1, 2, 1],
        result: [#"{"@ref":"B/1","@revision":3,"x":"a","b":"A/1"}"#, #"{"@ref":"A/1","@revision":3}"#]),
      Case(
        name: "both sides of a relationship are renamed",
        old: "A: {keys: {bs: {toMany: B, inverse: a}}}, B: {keys: {a: {toOne: A, inverse: bs}}}",
        new: "C: {keys: {many: {toMany: B, inverse: one}}}, B: {keys: {one: {toOne: C, inverse: many}}}",
        data: ["A/1", "B/1 {\"a\":\"A/1\"}"], steps: ["rename A C", "rename C.bs many", "rename B.a one"],
        touched: [2, 1, 1],
        result: [#"{"@ref":"C/1","@revision":3,"many":["B/1"]}"#, #"{"@ref":"B/1","@revision":3,"one":"C/1"}"#]),
      Case(
        name: "a key is dropped", old: "A: {keys: {x: {type: string}, y: {type: string}}}",
        new: "A: {keys: {y: {type: string}}}",
        data: ["A/1 {\"x\":\"a\",\"y\":\"b\"}", "A/2"], steps: ["drop A.x"], touched: [2],
        result: [
          #"{"@ref":"A/1","@revision":3,"y":"b"}"#,
          #"{"@ref":"A/2","@revision":3}"#.replacing("}", with: ",\"y\":null}"),
        ]),
      Case(
        name: "a key is dropped to begin anew", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: integer, default: 0}}}",
        data: ["A/1 {\"x\":\"a\"}"], steps: ["drop A.x"], touched: [1], result: [#"{"@ref":"A/1","@revision":2,"x":0}"#]
      ),
      Case(
        name: "an entity is dropped, and nobody names its objects; its subclass stays",
        old: "A: {keys: {x: {type: string}}}, B: {extends: A}, C: {keys: {a: {toOne: A}, all: {toMany: A}}}",
        new: "B: {keys: {x: {type: string}}}, C: {keys: {a: {toOne: B}, all: {toMany: B}}}",
        data: ["A/1", "B/1 {\"x\":\"b\"}", "C/1 {\"a\":\"A/1\",\"all\":[\"A/1\",\"B/1\"]}", "C/2 {\"a\":\"B/1\"}"],
        steps: ["drop A"], touched: [2],
        result: [
          #"{"@ref":"B/1","@revision":2,"x":"b"}"#, #"{"@ref":"C/1","@revision":5,"a":null,"all":["B/1"]}"#,
          #"{"@ref":"C/2","@revision":4,"a":"B/1","all":[]}"#,
        ]),
      Case(
        name: "an entity is dropped that others must have",
        old: "A: {}, B: {}, C: {keys: {a: {toOne: A, optional: false}}}",
        new: "B: {}, C: {keys: {a: {toOne: B, optional: false}}}", data: ["A/1", "C/1 {\"a\":\"A/1\"}", "B/1"],
        steps: ["drop A"],
        result: ["C.a: must have a value (1 object: C/1); `fill C.a VALUE`"]),
      Case(
        name: "an entity is dropped, and what named it is filled",
        old: "A: {}, B: {}, C: {keys: {a: {toOne: A, optional: false}}}",
        new: "B: {}, C: {keys: {a: {toOne: B, optional: false}}}", data: ["A/1", "C/1 {\"a\":\"A/1\"}", "B/1"],
        steps: ["drop A", "fill C.a \"B/1\""], touched: [2, 1],
        result: [#"{"@ref":"B/1","@revision":3}"#, #"{"@ref":"C/1","@revision":4,"a":"B/1"}"#]),
      Case(
        name: "a fill goes to those who have nothing", old: "A: {keys: {x: {type: string}}}, B: {extends: A}",
        new: "A: {keys: {x: {type: string, optional: false}}}, B: {extends: A}",
        data: ["A/1", "A/2 {\"x\":\"a\"}", "B/1"],
        steps: ["fill A.x \"none\"", "fill B.x \"b\""], touched: [1, 1],
        result: [
          #"{"@ref":"A/1","@revision":4,"x":"none"}"#, #"{"@ref":"A/2","@revision":2,"x":"a"}"#,
          #"{"@ref":"B/1","@revision":4,"x":"b"}"#,
        ]),
      Case(
        name: "a fill comes before a default", old: "A: {}", new: "A: {keys: {x: {type: integer, default: 1}}}",
        data: ["A/1"],
        steps: ["fill A.x 2"], touched: [1], result: [#"{"@ref":"A/1","@revision":2,"x":2}"#]),
      Case(
        name: "a filled relationship has both sides", old: "A: {}, B: {}",
        new: "A: {keys: {bs: {toMany: B, inverse: a}}}, B: {keys: {a: {toOne: A, inverse: bs, optional: false}}}",
        data: ["A/1", "B/1", "B/2"],
        steps: ["fill B.a \"A/1\""], touched: [3],
        result: [
          #"{"@ref":"A/1","@revision":4,"bs":["B/1","B/2"]}"#, #"{"@ref":"B/1","@revision":4,"a":"A/1"}"#,
          #"{"@ref":"B/2","@revision":4,"a":"A/1"}"#,
        ]),
      Case(
        name: "a fill with an object that is not there", old: "A: {}, B: {}", new: "A: {}, B: {keys: {a: {toOne: A}}}",
        data: ["B/1"],
        steps: ["fill B.a \"A/1\""], result: ["B.a: is filled with A/1, which does not exist (1 object: B/1)"]),
      Case(
        name: "a fill of what takes one object", old: "A: {}, B: {}",
        new: "A: {keys: {b: {toOne: B, inverse: a}}}, B: {keys: {a: {toOne: A, inverse: b}}}",
        data: ["A/1", "B/1", "B/2"], steps: ["fill B.a \"A/1\""],
        result: [
          "A.b: can hold only one object, but several name it (1 object: A/1 is named by \"B/1\" and \"B/2\")"
        ]),
      Case(
        name: "numbers become texts, and the key has another name", old: "A: {keys: {x: {type: number}}}",
        new: "A: {keys: {y: {type: string, minLength: 2}}}",
        data: ["A/1 {\"x\":12.5}", "A/2", "A/3 {\"x\":10}"], steps: ["convert A.x", "rename A.x y"], touched: [2, 3],
        result: [
          #"{"@ref":"A/1","@revision":4,"y":"12.5"}"#, #"{"@ref":"A/2","@revision":4,"y":null}"#,
          #"{"@ref":"A/3","@revision":4,"y":"10"}"#,
        ]),
      Case(
        name: "what cannot be converted is told", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: integer}}}",
        data: ["A/1 {\"x\":\"12\"}", "A/2 {\"x\":\"many\"}", "A/3 {\"x\":\"1.5\"}"], steps: ["convert A.x"],
        result: [
          "A.x: has values that cannot be converted (2 objects: A/2 is \"many\", which does not stand for an integer; "
            + "A/3 must be a whole number of 64 bits, not 1.5); `convert A.x or null`"
        ]),
      Case(
        name: "what cannot be converted becomes something else", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: integer, maximum: 20, optional: false}}}",
        data: ["A/1 {\"x\":\"12\"}", "A/2 {\"x\":\"many\"}", "A/3 {\"x\":\"21\"}"],
        steps: ["convert A.x or 0"], touched: [3],
        result: [
          #"{"@ref":"A/1","@revision":4,"x":12}"#, #"{"@ref":"A/2","@revision":4,"x":0}"#,
          #"{"@ref":"A/3","@revision":4,"x":0}"#,
        ]),
      Case(
        name: "the replacement must fit", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: integer, maximum: 20}}}",
        data: ["A/1 {\"x\":\"a\"}"], steps: ["convert A.x or 30"],
        result: ["A.x: the value of 'convert … or' is 30, over the maximum 20 (1 object: A/1)"]),
      Case(
        name: "a required value is not to be null", old: "A: {keys: {x: {type: string, optional: false}}}",
        new: "A: {keys: {x: {type: integer, optional: false}}}", data: ["A/1 {\"x\":\"a\"}"],
        steps: ["convert A.x or null"],
        result: ["A.x: must have a value (1 object: A/1); `fill A.x VALUE`"]),
      Case(
        name: "values under a new constraint", old: "A: {keys: {x: {toMany: integer, ordered: true}}}",
        new: "A: {keys: {x: {toMany: integer, ordered: true, maximum: 2}}}", data: ["A/1 {\"x\":[3,1,4,2]}"],
        steps: ["convert A.x or null"], touched: [1],
        result: [#"{"@ref":"A/1","@revision":2,"x":[1,2]}"#]),
      Case(
        name: "members that become equal", old: "A: {keys: {x: {toMany: string}}}",
        new: "A: {keys: {x: {toMany: number}}}",
        data: ["A/1 {\"x\":[\"1\",\"1.0\"]}"], steps: ["convert A.x"],
        result: ["A.x: members become equal, but must be unique (1 object: A/1); `drop A.x`"]),
      Case(
        name: "one becomes many", old: "A: {keys: {x: {toOne: A}}}",
        new: "A: {keys: {x: {toMany: A, inverse: y}, y: {toMany: A, inverse: x}}}",
        data: ["A/1 {\"x\":\"A/1\"}", "A/2 {\"x\":\"A/1\"}", "A/3"], steps: ["convert A.x"], touched: [2 + 1],
        result: [
          #"{"@ref":"A/1","@revision":4,"x":["A/1"],"y":["A/1","A/2"]}"#,
          #"{"@ref":"A/2","@revision":4,"x":["A/1"],"y":[]}"#,
          #"{"@ref":"A/3","@revision":4,"x":[],"y":[]}"#,
        ]),
      Case(
        name: "many become one where there is no more", old: "A: {keys: {x: {toMany: integer}}}",
        new: "A: {keys: {x: {type: string}}}",
        data: ["A/1 {\"x\":[1]}", "A/2", "A/3 {\"x\":[1,2]}"], steps: ["convert A.x"],
        result: ["A.x: can hold only one value (1 object: A/3 has 2); `drop A.x`"]),
      Case(
        name: "texts become references", old: "A: {keys: {x: {type: string}}}, B: {}",
        new: "A: {keys: {x: {toOne: C, inverse: as}}}, C: {keys: {as: {toMany: A, inverse: x}}}",
        data: ["B/1", "A/1 {\"x\":\"B/1\"}", "A/2"], steps: ["rename B C", "convert A.x"], touched: [1, 1],
        result: [
          #"{"@ref":"A/1","@revision":4,"x":"C/1"}"#, #"{"@ref":"A/2","@revision":3,"x":null}"#,
          #"{"@ref":"C/1","@revision":4,"as":["A/1"]}"#,
        ]),
      Case(
        name: "an order is given up", old: "A: {keys: {x: {toMany: integer, ordered: true}}}",
        new: "A: {keys: {x: {toMany: integer}}}",
        data: ["A/1 {\"x\":[2,1]}", "A/2 {\"x\":[1,2]}"], steps: ["convert A.x"], touched: [1],
        result: [#"{"@ref":"A/1","@revision":3,"x":[1,2]}"#, #"{"@ref":"A/2","@revision":2,"x":[1,2]}"#]),
      Case(
        name: "a side that does not agree is dropped and filled from the other",
        old: "A: {keys: {x: {toOne: A}, y: {toMany: A}}}",
        new: "A: {keys: {x: {toOne: A, inverse: y}, y: {toMany: A, inverse: x}}}",
        data: ["A/1", "A/2 {\"x\":\"A/1\"}", "A/3 {\"y\":[\"A/1\",\"A/2\"]}"],
        steps: ["drop A.y"], touched: [3],
        result: [
          #"{"@ref":"A/1","@revision":4,"x":null,"y":["A/2"]}"#, #"{"@ref":"A/2","@revision":4,"x":"A/1","y":[]}"#,
          #"{"@ref":"A/3","@revision":4,"x":null,"y":[]}"#,
        ]),
      Case(
        name: "references that lead elsewhere are given up on both sides",
        old: "A: {keys: {p: {toOne: P, inverse: as}}}, P: {keys: {as: {toMany: A, inverse: p}}}, Q: {extends: P}",
        new: "A: {keys: {p: {toOne: Q, inverse: as}}}, P: {}, Q: {extends: P, keys: {as: {toMany: A, inverse: p}}}",
        data: ["P/1", "Q/1", "A/1 {\"p\":\"P/1\"}", "A/2 {\"p\":\"Q/1\"}"],
        steps: ["convert A.p or null", "drop P.as"], touched: [1, 2],
        result: [
          #"{"@ref":"A/1","@revision":5,"p":null}"#, #"{"@ref":"A/2","@revision":4,"p":"Q/1"}"#,
          #"{"@ref":"P/1","@revision":5}"#,
          #"{"@ref":"Q/1","@revision":5,"as":["A/2"]}"#,
        ]),
      Case(
        name: "a key is computed from two that go",
        old: "A: {keys: {x: {type: string}, y: {type: string}}}, B: {extends: A}",
        new: "A: {keys: {z: {type: string, optional: false}}}, B: {extends: A}",
        data: ["A/1 {\"x\":\"a\",\"y\":\"b\"}", "B/1 {\"x\":\"c\",\"y\":\"d\"}"],
        steps: ["set A.z = x + ' ' + y", "drop A.x", "drop A.y"], touched: [2, 2, 2],
        result: [#"{"@ref":"A/1","@revision":3,"z":"a b"}"#, #"{"@ref":"B/1","@revision":3,"z":"c d"}"#]),
      Case(
        name: "a set reads names as the steps before left them, and the lowest entity has its own",
        old: "A: {keys: {x: {type: integer}}}, B: {extends: A}",
        new: "C: {keys: {y: {type: integer}, z: {type: number}}}, B: {extends: C}",
        data: ["A/1 {\"x\":2}", "B/1 {\"x\":3}"],
        steps: ["rename A.x y", "set A.z = double(y) / 4.0", "set B.z = 9.0", "rename A C"], touched: [2, 1, 1, 1],
        result: [#"{"@ref":"C/1","@revision":3,"y":2,"z":0.5}"#, #"{"@ref":"B/1","@revision":3,"y":3,"z":9}"#]),
      Case(
        name: "a set takes the place of a conversion, also of a key by itself",
        old: "A: {keys: {x: {type: string}, y: {type: integer}}}",
        new: "A: {keys: {x: {type: integer, optional: false}, y: {type: integer}}}",
        data: ["A/1 {\"x\":\"12\",\"y\":1}", "A/2 {\"x\":\"many\"}"],
        steps: ["set A.x = x.matches('^[0-9]+$') ? int(x) : size(x)", "set A.y = y == null ? null : y"],
        touched: [2, 0],
        result: [#"{"@ref":"A/1","@revision":3,"x":12,"y":1}"#, #"{"@ref":"A/2","@revision":3,"x":4,"y":null}"#]),
      Case(
        name: "a set reads through relationships, collections and computed keys that go",
        old: "A: {keys: {bs: {toMany: B, inverse: a}, n: {computed: size(bs), type: integer}}}, "
          + "B: {keys: {a: {toOne: A, inverse: bs}, v: {type: integer}}}",
        new:
          "A: {keys: {sum: {type: integer}, n: {type: integer}}}, B: {keys: {v: {type: integer}, of: {type: integer}}}",
        data: ["A/1", "B/1 {\"a\":\"A/1\",\"v\":2}", "B/2 {\"a\":\"A/1\",\"v\":3}"],
        steps: ["set A.sum = sum(bs.map(b, b.v))", "set B.of = a.n", "set A.n = n", "drop A.bs", "drop B.a"],
        touched: [1, 2, 1, 1, 2],
        result: [
          #"{"@ref":"A/1","@revision":4,"sum":5,"n":2}"#, #"{"@ref":"B/1","@revision":4,"v":2,"of":2}"#,
          #"{"@ref":"B/2","@revision":4,"v":3,"of":2}"#,
        ]),
      Case(
        name: "a set relationship has both sides, and the former one has none",
        old: "A: {keys: {b: {toOne: B, inverse: as}, c: {toOne: B}}}, B: {keys: {as: {toMany: A, inverse: b}}}",
        new: "A: {keys: {b: {toOne: C, inverse: as}, c: {toOne: C}}}, C: {keys: {as: {toMany: A, inverse: b}}}",
        data: ["B/1", "B/2", "A/1 {\"b\":\"B/1\",\"c\":\"B/2\"}", "A/2 {\"b\":\"B/1\"}"],
        steps: ["set A.b = c == null ? 'B/1' : 'B/2'", "rename B C"], touched: [4, 3],
        result: [
          #"{"@ref":"A/1","@revision":5,"b":"C/2","c":"C/2"}"#, #"{"@ref":"A/2","@revision":5,"b":"C/1","c":null}"#,
          #"{"@ref":"C/1","@revision":5,"as":["A/2"]}"#, #"{"@ref":"C/2","@revision":5,"as":["A/1"]}"#,
        ]),
      Case(
        name: "what a set leaves null is filled", old: "A: {keys: {x: {type: integer}}}",
        new: "A: {keys: {x: {type: integer}, y: {type: integer, optional: false}}}", data: ["A/1 {\"x\":1}", "A/2"],
        steps: ["set A.y = x", "fill A.y 7"], touched: [1, 1],
        result: [#"{"@ref":"A/1","@revision":3,"x":1,"y":1}"#, #"{"@ref":"A/2","@revision":3,"x":null,"y":7}"#]),
      Case(
        name: "a fill before a conversion leaves what that takes away", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: date}}}", data: ["A/1 {\"x\":\"unknown\"}", "A/2"],
        steps: ["fill A.x \"1900-01-01\"", "convert A.x or null"], touched: [1, 1],
        result: [#"{"@ref":"A/1","@revision":3,"x":null}"#, #"{"@ref":"A/2","@revision":3,"x":"1900-01-01"}"#]),
      Case(
        name: "a fill on each side of a conversion", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: integer}}}", data: ["A/1 {\"x\":\"unknown\"}", "A/2"],
        steps: ["fill A.x 1", "convert A.x or null", "fill A.x 2", "fill A.x 3"], touched: [1, 1, 1, 0],
        result: [#"{"@ref":"A/1","@revision":3,"x":2}"#, #"{"@ref":"A/2","@revision":3,"x":1}"#]),
      Case(
        name: "a fill before a set", old: "A: {keys: {x: {type: string}, y: {type: string}}}",
        new: "A: {keys: {x: {type: string}, y: {type: string}}}", data: ["A/1 {\"x\":\"a\"}", "A/2"],
        steps: ["fill A.y \"nobody\"", "set A.y = x == null ? null : x"], touched: [0, 1],
        result: [#"{"@ref":"A/1","@revision":3,"x":"a","y":"a"}"#, #"{"@ref":"A/2","@revision":2,"x":null,"y":null}"#]),
      Case(
        name: "a fill of a relationship before the objects that it named are dropped",
        old: "A: {}, B: {}, C: {keys: {a: {toOne: A}}}", new: "B: {}, C: {keys: {a: {toOne: B}}}",
        data: ["A/1", "B/1", "C/1 {\"a\":\"A/1\"}", "C/2"], steps: ["fill C.a \"B/1\"", "drop A"], touched: [1, 2],
        result: [
          #"{"@ref":"B/1","@revision":2}"#, #"{"@ref":"C/1","@revision":5,"a":null}"#,
          #"{"@ref":"C/2","@revision":5,"a":"B/1"}"#,
        ]),
      Case(
        name: "a set that fails for objects", old: "A: {keys: {x: {type: string}}}",
        new: "A: {keys: {x: {type: string}, y: {type: string}}}", data: ["A/1 {\"x\":\"a\"}", "A/2", "A/3"],
        steps: ["set A.y = x + '!'"],
        result: [
          "A.y: cannot be set by 'set A.y = x + '!'' (2 objects: A/2 fails: no such overload: null_type + string; "
            + "A/3 fails: no such overload: null_type + string)"
        ]),
      Case(
        name: "a set that gives what the key does not take", old: "A: {keys: {x: {type: integer}}}, B: {}",
        new: "A: {keys: {x: {type: integer, maximum: 5}, b: {toOne: B}}}, B: {}", data: ["A/1 {\"x\":4}"],
        steps: ["set A.x = x * 2", "set A.b = 'B/' + string(x)"],
        result: [
          "step 'set A.b = 'B/' + string(x)': it reads 'A.x', which 'set A.x = x * 2' has changed; put this step "
            + "before that one"
        ]),
      Case(
        name: "a set that names what is not there", old: "A: {keys: {x: {type: integer}}}, B: {}",
        new: "A: {keys: {x: {type: integer}, b: {toOne: B}}}, B: {}", data: ["A/1 {\"x\":4}"],
        steps: ["set A.b = 'B/' + string(x)"],
        result: ["A.b: cannot be set by 'set A.b = 'B/' + string(x)' (1 object: A/1 gives B/4, which does not exist)"]),
    ])
  func steps(of example: Case) throws {
    let fixture = try EvolutionFixture(example.old, example.new, data: example.data, steps: example.steps)
    guard example.result.allSatisfy({ $0.hasPrefix("{") }) else {
      #expect(try fixture.refusal() == example.result)
      return
    }
    let migration = try fixture.migrated()
    #expect(objects(of: migration.state) == example.result)
    #expect(migration.report.steps.map(\.objects) == example.touched)
    #expect(migration.report.steps.map(\.step.description) == example.steps)
  }

  @Test(
    "A set that does not go with the schemas is refused before an object is read",
    arguments: [
      (["set A.x = y"], "column 1 of the expression: undeclared reference to 'y'"),
      (["set A.x = s + 1"], "column 3 of the expression: "), (["set A.x = s +"], "of the expression: "),
      (["set A.x = s"], "the expression gives a string, and 'x' takes an integer"),
      (["set A.x = [x]"], "the expression gives a list"), (["set A.x = b"], "the expression gives a reference to B"),
      (["set A.b = x"], "the expression gives an integer, and 'b' takes a reference to B"),
      (["set A.bs = null"], "'bs' is a collection; 'set' gives one value"),
      (["set A.c = x"], "the new schema has no stored key 'c' in A"),
      (["set A.q = x"], "the new schema has no stored key 'q' in A"), (["set D.x = 1"], "the data has no entity 'D'"),
      (["drop A.s", "set A.x = size(s)"], "undeclared reference to 's'"),
      (["rename A.s t", "set A.x = size(s)"], "undeclared reference to 's'"),
      (["convert A.s", "set A.x = size(s)"], "it reads 'A.s', which 'convert A.s' has changed; put this step before"),
      (["fill A.x 1", "set A.s = string(x)"], "it reads 'A.x', which 'fill A.x 1' has changed; put this step before"),
      (
        ["set A.x = 1", "set A.s = string(x)"], "it reads 'A.x', which 'set A.x = 1' has changed; put this step before"
      ),
      (["set A.x = 1", "set A.s = string(c)"], "it reads 'A.x', which 'set A.x = 1' has changed"),
      (["set A.b = null", "set B.n = size(of)"], "it reads 'B.of', which 'set A.b = null' has changed"),
      (["drop B", "set A.x = b.n"], "it reads 'A.b', which 'drop B' has changed"),
      (["fill A.x 1", "drop A.x"], "it drops the values that 'fill A.x 1' fills; put this step before that one"),
      (["set A.x = 1", "drop A.x"], "it drops the values that 'set A.x = 1' sets; put this step before that one"),
    ])
  func settingMistakes(steps: [String], reason: String) throws {
    let schema =
      "A: {keys: {x: {type: integer}, s: {type: string}, c: {computed: x + 1}, b: {toOne: B, inverse: of}, "
      + "bs: {toMany: B}}}, B: {keys: {n: {type: integer}, of: {toMany: A, inverse: b}}}"
    let fixture = try EvolutionFixture(schema, schema, steps: steps)
    let mistakes = try fixture.refusal()
    let last = try #require(steps.last)
    #expect(mistakes.contains { $0.hasPrefix("step '\(last)': ") && $0.contains(reason) }, "\(mistakes)")
  }

  @Test("A set has the budget of an expression for each object")
  func settingBudget() throws {
    let schema = "A: {keys: {x: {type: integer}}}"
    let list = "[1,2,3,4,5,6,7,8,9,10]"
    let loop = (0..<6).reduce("1") { body, depth in "size(\(list).map(v\(depth), \(body)))" }
    let fixture = try EvolutionFixture(schema, schema, data: ["A/1"], steps: ["set A.x = \(loop)"])
    let refusal = try fixture.refusal()
    #expect(refusal.count == 1 && refusal[0].contains("A/1 fails: the evaluation exceeds its cost limit"), "\(refusal)")
  }

  private static let convertible: [(AttributeType, String, AttributeType, String?)] = [
    (.integer, "5", .string, "\"5\""), (.number, "0.1", .string, "\"0.1\""), (.boolean, "true", .string, "\"true\""),
    (.date, "\"2010-03-01\"", .string, "\"2010-03-01\""), (.json, "{\"a\":1}", .string, nil),
    (.json, "[1]", .string, nil),
    (.json, "3", .string, "\"3\""), (.json, "\"a\"", .string, "\"a\""), (.string, "\"5\"", .integer, "5"),
    (.string, "\"-5.0\"", .integer, "-5"), (.string, "\"1e2\"", .number, "100"), (.string, "\"1e999\"", .number, nil),
    (.string, "\"\"", .integer, nil), (.string, "\"null\"", .integer, nil), (.string, "\"[1]\"", .integer, nil),
    (.string, "\"\\\"5\\\"\"", .integer, nil), (.string, "\"true\"", .integer, nil),
    (.string, "\"false\"", .boolean, "false"),
    (.string, "\"0\"", .boolean, nil), (.string, "\"2010-03-01\"", .date, "\"2010-03-01\""),
    (.string, "\"2010\"", .date, nil),
    (.string, "\"a\"", .json, "\"a\""), (.integer, "7", .number, "7"), (.integer, "9007199254740993", .number, nil),
    (.integer, "9223372036854775807", .number, nil), (.number, "7.5", .integer, nil), (.number, "8", .integer, "8"),
    (.number, "1e30", .integer, nil), (.boolean, "true", .integer, nil), (.integer, "1", .boolean, nil),
    (.integer, "1", .date, nil), (.date, "\"2010-03-01\"", .number, nil), (.boolean, "false", .json, "false"),
    (.json, "{\"a\":1}", .json, "{\"a\":1}"),
  ]

  @Test("Values are converted by what they say as JSON", arguments: 0..<convertible.count)
  func conversions(index: Int) throws {
    let (from, value, to, result) = Self.convertible[index]
    let fixture = try EvolutionFixture(
      "A: {keys: {x: {type: \(from.rawValue)}}}", "A: {keys: {x: {type: \(to.rawValue)}}}",
      data: ["A/1 {\"x\":\(value)}"],
      steps: ["convert A.x"])
    guard let result else {
      #expect(try fixture.refusal().count == 1)
      return
    }
    let migration = try fixture.migrated()
    // An integer and a number are different values, although they are written the same.
    let isSame = value == result && (from == to || from == .json || to == .json || from == .date || to == .date)
    #expect(
      objects(of: migration.state) == ["{\"@ref\":\"A/1\",\"@revision\":\(isSame ? 1 : 2),\"x\":\(result)}"])
  }
}
