import KeyValueModel
import Testing

@Suite("Mistakes between the entities of a schema")
struct SchemaStructureMistakesTests {
  typealias Mistake = SchemaMistakesTests.Mistake

  @Test(
    "Relationships and inverses",
    arguments: [
      Mistake("the schema has no entity 'B'", key: "b: {toOne: ¶B}"),
      .init("A has no key 'c'", key: "b: {toOne: A, inverse: ¶c}"),
      .init("'delete' must be one of nullify, cascade, deny", key: "b: {toOne: A, delete: ¶destroy}"),
      .init("'toOne' must be a text", key: "b: {toOne: ¶[A]}"),
      .init("'inverse' must be a text", key: "b: {toOne: A, inverse: ¶[b]}"),
      .init(
        "A.c must be a toOne or toMany A whose inverse is 'b'",
        key: "b: {toOne: A, inverse: ¶c}\n      c: {type: string}"),
      .init(
        "A.c must be a toOne or toMany A whose inverse is 'b'", key: "b: {toOne: A, inverse: ¶c}\n      c: {toOne: A}"),
      .init(
        "A.c must be a toOne or toMany A whose inverse is 'b'",
        key: "b: {toOne: A, inverse: ¶c}\n      c: {computed: b}"),
      .init(
        "B.a must be a toOne or toMany A whose inverse is 'b'",
        """
        entities:
          A: {keys: {b: {toOne: B, inverse: ¶a}}}
          B: {keys: {a: {toOne: A, inverse: c}}}
        """, count: 2),
      .init("the schema has no entity 'B'; a collection of values has one of string, integer", key: "b: {toMany: ¶B}"),
      .init("the schema has no entity 'text'", key: "b: {toMany: ¶text, inverse: c}"),
      .init("A has no key 'c'", key: "b: {toMany: A, inverse: ¶c}"),
      .init("'delete' must be one of nullify, cascade, deny", key: "b: {toMany: A, delete: ¶destroy}"),
      .init(
        "A.c must be a toOne or toMany A whose inverse is 'b'", key: "b: {toMany: A, inverse: ¶c}\n      c: {toMany: A}"
      ),
      .init(
        "A.c must be a toOne or toMany A whose inverse is 'b'",
        key: "b: {toMany: A, inverse: ¶c}\n      c: {toMany: string}"),
      .init(
        "B.a must be a toOne or toMany A whose inverse is 'b'",
        """
        entities:
          A: {keys: {b: {toOne: B, inverse: ¶a}}}
          B: {keys: {a: {toMany: C, inverse: b}}}
          C: {keys: {b: {toOne: B, inverse: a}}}
        """),
      // Two keys cannot have the same inverse.
      .init(
        "B.as must be a toOne or toMany A whose inverse is 'c'",
        """
        entities:
          A: {keys: {b: {toOne: B, inverse: as}, c: {toOne: B, inverse: ¶as}}}
          B: {keys: {as: {toMany: A, inverse: b}}}
        """),
      // The inverse names a subclass: it cannot hold every object of A.
      .init(
        "B.a must be a toOne or toMany A whose inverse is 'b'",
        """
        entities:
          A: {keys: {b: {toOne: B, inverse: ¶a}}}
          A2: {extends: A}
          B: {keys: {a: {toOne: A2, inverse: b}}}
        """),
    ])
  func relationships(mistake: Mistake) throws {
    try SchemaMistakesTests.check(mistake)
  }

  @Test(
    "Computed keys that lead nowhere",
    arguments: [
      Mistake("A has no key 'y'", key: "x: {computed: ¶y}"),
      .init("follows a value that has no keys", key: "x: {computed: ¶y.z}\n      y: {type: json}"),
      .init("follows 'y', which is not a collection", key: "x: {computed: ¶y.@sum.z}\n      y: {toOne: A}"),
      .init(
        "'x' is declared as string, but 'y' is an integer",
        key: "¶x: {type: string, computed: y}\n      y: {type: integer}"),
      .init(
        "'x' is declared as json, but 'y' is a reference to A",
        key: "¶x: {type: json, computed: y}\n      y: {toOne: A}"),
      .init(
        "'z' is declared as string, but 'x' is a number",
        key: "x: {type: number, computed: y}\n      y: {type: integer}\n      ¶z: {type: string, computed: x}"),
      .init(
        "'x' is declared as integer, but 'y' is a list",
        key: "¶x: {type: integer, computed: y}\n      y: {toMany: integer}"),
      .init(
        "'x' is declared as string, but 'y.@count' is an integer",
        key: "¶x: {type: string, computed: y.@count}\n      y: {toMany: A}"),
      .init("takes numbers", key: "x: {computed: ¶y.@sum.z}\n      y: {toMany: A}\n      z: {type: string}"),
      // A key of a subclass is undefined after a to-one whose destination is its parent.
      .init(
        "A has no key 'extra'",
        """
        entities:
          A: {keys: {x: {computed: ¶peer.extra}, peer: {toOne: A}}}
          A2: {extends: A, keys: {extra: {type: string}}}
        """),
      // A mistake that every subclass inherits is reported once.
      .init(
        "'x' is declared as string",
        """
        entities:
          A: {keys: {¶x: {type: string, computed: y}, y: {type: integer}}}
          B: {extends: A}
          C: {extends: B}
        """),
    ])
  func computedKeys(mistake: Mistake) throws {
    try SchemaMistakesTests.check(mistake)
  }

  @Test(
    "Cycles of computed keys",
    arguments: [
      Mistake("depends on itself: A.x → A.x", key: "¶x: {computed: x}"),
      .init("depends on itself: A.x → A.y → A.x", key: "¶x: {computed: y}\n      y: {computed: x}"),
      .init("depends on itself: A.x → A.x", key: "¶x: {computed: parent.x}\n      parent: {toOne: A}"),
      .init(
        "depends on itself: A.x → B.y → A.x",
        """
        entities:
          A: {keys: {¶x: {computed: b.y}, b: {toOne: B}}}
          B: {keys: {y: {computed: a.x}, a: {toOne: A}}}
        """),
      .init("depends on itself: A.x → A.x", key: "¶x: {computed: others.@max.x}\n      others: {toMany: A}"),
      .init(
        "depends on itself: A.total → B.sum → A.total",
        """
        entities:
          A: {keys: {¶total: {type: number, computed: bs.@sum.sum}, bs: {toMany: B}}}
          B: {keys: {sum: {type: number, computed: a.total}, a: {toOne: A}}}
        """),
      // Only a subclass closes the cycle.
      .init(
        "depends on itself",
        """
        entities:
          A: {keys: {x: {computed: peer.y}, y: {computed: z}, z: {type: string}, peer: {toOne: A}}}
          A2: {extends: A, keys: {¶y: {computed: x}}}
        """),
      // The inherited path counts too.
      .init(
        "depends on itself",
        """
        entities:
          A: {keys: {x: {computed: y}, y: {computed: z}, z: {type: string}}}
          A2: {extends: A, keys: {x: {computed: z}, ¶y: {computed: x}}}
        """),
    ])
  func cycles(mistake: Mistake) throws {
    try SchemaMistakesTests.check(mistake)
  }

  @Test("A path through a cycle of computed keys is a mistake among others, and no endless search")
  func pathThroughCycle() throws {
    let yaml = """
      entities:
        A:
          keys:
            x: {computed: y}
            y: {computed: x}
            z: {computed: x.q}
      """
    let error = try #require(throws: SchemaError.self) { try Schema(yaml: yaml) }
    #expect(error.problems.map(\.line) == [4, 6])
  }

  @Test(
    "Inherited keys that cannot be declared so",
    arguments: [
      Mistake(
        "'x' is inherited", "entities:\n  A: {keys: {x: {type: string}}}\n  B: {extends: A, keys: {¶x: {type: string}}}"
      ),
      .init(
        "'x' is inherited",
        "entities:\n  A: {keys: {x: {type: string}}}\n  B: {extends: A, keys: {¶x: {computed: y}, y: {type: string}}}"),
      .init(
        "'x' is inherited",
        "entities:\n  A: {keys: {x: {computed: y}, y: {type: string}}}\n  B: {extends: A, keys: {¶x: {type: string}}}"),
      .init(
        "'x' is inherited",
        "entities:\n  A: {keys: {x: {toOne: A}}}\n  M: {extends: A}\n  B: {extends: M, keys: {¶x: {toOne: B}}}"),
      // Paths continue after a key that leads to an object: it must lead to the same kind of object everywhere.
      .init(
        "'link' leads to a C in A and must do so here",
        """
        entities:
          C: {keys: {p: {type: string}, q: {type: string}, r: {type: string}}}
          D: {keys: {r: {type: string}}}
          A: {keys: {link: {computed: c}, c: {toOne: C}, name: {computed: link.r}}}
          B: {extends: A, keys: {d: {toOne: D}, ¶link: {computed: d}}}
        """),
      .init(
        "'link' leads to a C in A and must do so here",
        """
        entities:
          C: {keys: {r: {type: string}}}
          A: {keys: {link: {computed: c}, c: {toOne: C}}}
          B: {extends: A, keys: {s: {type: string}, ¶link: {computed: s}}}
        """),
      // A key after a relationship has the type that it has in the relationship's entity.
      .init(
        "'c' is a number in A and must be so here, where it is a string",
        """
        entities:
          A: {keys: {n: {type: number}, s: {type: string}, c: {computed: n}}}
          B: {extends: A, keys: {¶c: {type: string, computed: s}}}
        """),
      .init(
        "'c' is a list in A and must be so here, where it is a boolean",
        """
        entities:
          A: {keys: {n: {type: number}, c: {computed: "[n]"}}}
          B: {extends: A, keys: {¶c: {computed: n > 1.0}}}
        """),
      .init(
        "'t' is a boolean in A and must be so here, where it is a list",
        """
        entities:
          A: {keys: {s: {type: string}, t: {type: boolean, computed: s == 'a'}}}
          B: {extends: A, keys: {¶t: {computed: "[s]"}}}
        """),
    ])
  func inheritance(mistake: Mistake) throws {
    try SchemaMistakesTests.check(mistake)
  }
}
