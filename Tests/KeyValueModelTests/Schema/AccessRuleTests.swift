import Testing

@testable import KeyValueModel

@Suite("Rules of a schema") struct AccessRuleTests {
  private func schema(_ access: String, of entity: String = "A") throws(SchemaError) -> Schema {
    try Schema(
      yaml: """
        \(access)
        entities:
          A:
            access: { read: 'x == identity.sub' }
            keys: { x: { type: string, indexed: true }, n: { type: integer }, b: { toOne: B } }
          B:
            keys: { x: { type: string } }
          C:
            extends: A
            access: { update: 'n < 5 && before.n < 5', keys: { n: { read: 'identity.level > 3' } } }
            keys: { y: { type: string } }
        """)
  }

  private func viewer(_ claims: JSONObject?, _ schema: Schema) -> Viewer { Viewer(claims: claims, in: schema) }

  @Test("Each rule is looked for alone: in the entity, in its parents, in what the file says for all")
  func inheritance() throws {
    let schema = try schema("access: { read: 'identity != null', delete: 'false', create: 'x == null' }")
    func text(_ entity: String, _ action: AccessRules.Action) throws -> String? {
      try schema.requireEntity(entity).rules.actions[action]?.text
    }
    #expect(try text("A", .read) == "x == identity.sub" && text("A", .delete) == "false")
    #expect(try text("A", .update) == nil && text("B", .read) == "identity != null")
    #expect(try text("C", .read) == "x == identity.sub" && text("C", .create) == "x == null")
    #expect(try text("C", .update) == "n < 5 && before.n < 5")
  }

  @Test(
    "Mistakes are found with line and column",
    arguments: [
      ("access: { read: 'nothing == 1' }", 1, 18, "nothing"), ("access: { read: 'before == null' }", 1, 18, "before"),
      ("access: { rea: 'true' }", 1, 11, "'rea'"), ("access: { read: '1 + 1' }", 1, 18, "true or false"),
      ("access: { read: 'identity.sub ==' }", 1, 33, ""),
      ("access: { keys: { x: { read: 'true' } } }", 1, 11, "'keys'"),
      ("access: 5", 1, 9, "a mapping of names"),
    ])
  func mistakes(access: String, line: Int, column: Int, word: String) throws {
    let error = try #require(throws: SchemaError.self) { try schema(access) }
    let problem = try #require(error.problems.first)
    #expect(problem.line == line && problem.column == column, "\(problem)")
    #expect(problem.message.contains(word), "\(problem)")
  }

  @Test("Keys are not called identity or before, and rules of keys name keys that are there")
  func keys() throws {
    for name in ["identity", "before"] {
      let error = try #require(throws: SchemaError.self) {
        try Schema(yaml: "entities:\n  A:\n    keys: { \(name): { type: string } }")
      }
      #expect(error.problems.first?.message.contains(name) == true)
    }
    let rules = [
      ("{ nope: { read: 'true' } }", "no key 'nope'"), ("{ x: { read: 'x == null' } }", "x"),
      ("{ x: { write: 'true' } }", "'write'"), ("{ z: { update: 'true' } }", "computed"),
      ("{ x: { inverse: 'true' } }", "'inverse'"), ("{ m: { inverse: 'true' } }", "'inverse'"),
      ("{ o: { inverse: 'true' } }", "'inverse'"), ("{ f: { inverse: 'x == null' } }", "x"),
    ]
    for (keys, word) in rules {
      let error = try #require(throws: SchemaError.self) {
        try Schema(
          yaml: """
            entities:
              A:
                access: { keys: \(keys) }
                keys:
                  x: { type: string }
                  z: { computed: x }
                  o: { toOne: A, inverse: m }
                  m: { toMany: A, inverse: o }
                  f: { toMany: A, inverse: f }
            """)
      }
      #expect(error.problems.first?.message.contains(word) == true, "\(error)")
    }
  }

  @Test("A rule that reads what others change without being asked there is warned about, with its place")
  func warnings() throws {
    let schema = try Schema(
      yaml: """
        entities:
          Team:
            access:
              read: members.exists(m, m.user == identity.sub)
              update: lead.user == identity.sub && size > 1
            keys:
              members: { toMany: Person, inverse: team }
              lead: { toOne: Person }
              size: { computed: members.@count }
              fans: { toMany: Person, inverse: likes }
          Person:
            access:
              read: user == identity.sub || team != null || likes.exists(t, true)
              delete: team.members.exists(m, m.user == identity.sub)
              keys: { likes: { inverse: identity != null } }
            keys:
              user: { type: string }
              team: { toOne: Team, inverse: members }
              likes: { toMany: Team, inverse: fans }
        """)
    #expect(schema.warnings.map(\.line) == [4, 5, 13, 14])
    for (warning, (key, inverse)) in zip(
      schema.warnings,
      [
        ("Team.members", "Person.team"), ("Team.members", "Person.team"), ("Person.likes", "Team.fans"),
        ("Team.members", "Person.team"),
      ])
    {
      #expect(warning.message.contains("'\(key)'") && warning.message.contains("'\(inverse)'"), "\(warning)")
    }
    #expect(schema.warnings.first?.rendered(as: "warning", file: "a.yaml").hasPrefix("a.yaml:4:13: warning: ") == true)
  }

  @Test("Identities that have the same of what rules read are one viewer")
  func classes() throws {
    let schema = try schema("access: { read: 'identity != null' }")
    func viewer(_ claims: JSONObject?) -> Viewer { Viewer(claims: claims, in: schema) }
    let ann: JSONObject = ["sub": .string("ann"), "exp": .integer(1), "level": .integer(1)]
    #expect(viewer(ann) == viewer(["sub": .string("ann"), "exp": .integer(2), "level": .integer(1)]))
    #expect(viewer(ann) != viewer(["sub": .string("ann"), "level": .integer(5)]))
    #expect(viewer(ann) != viewer(["sub": .string("bob"), "level": .integer(1)]))
    #expect(viewer(nil) != viewer([:]))
    let c = try schema.requireEntity("C")
    #expect(viewer(ann).hiddenKeys(of: c) == [1] && viewer(["level": .integer(5)]).hiddenKeys(of: c).isEmpty)
    #expect(try viewer(ann).mayReadAll(of: schema.requireEntity("B"), in: schema))
    #expect(try !viewer(nil).mayReadAll(of: schema.requireEntity("B"), in: schema))
  }

  @Test("A rule that depends only on the identity is evaluated without an object")
  func outcomes() throws {
    func outcome(_ rule: String, _ claims: JSONObject?) throws -> Bool? {
      let schema = try Schema(
        yaml: """
          entities:
            Note:
              access: { update: '\(rule)' }
              keys: { owner: { type: string }, open: { type: boolean } }
          """)
      let viewer = Viewer(claims: claims, in: schema)
      return try WriteAccess(claims: claims, viewer: viewer, in: schema)
        .permits(.update, of: schema.requireEntity("Note"))
    }
    let teller: JSONObject = ["sub": .string("ann"), "roles": .array([.string("teller")])]
    let ann: JSONObject = ["sub": .string("ann"), "roles": .array([])]
    let rule = #"owner == identity.sub || "teller" in identity.roles"#
    #expect(try outcome(rule, teller) == true && outcome(rule, ann) == nil && outcome(rule, nil) == nil)
    let both = #"open && "teller" in identity.roles"#
    #expect(try outcome(both, teller) == nil && outcome(both, ann) == false && outcome(both, nil) == false)
    // An error counts as false, and does not keep the other operand from deciding.
    #expect(try outcome("identity.level > 3 && open", ann) == false)
    #expect(try outcome("identity.level > 3 || true", ann) == true)
    #expect(try outcome("identity.level > 3 || open", ann) == nil)
    #expect(try outcome("before.open || false", teller) == nil && outcome("this.open && true", teller) == nil)
    #expect(try outcome("!(identity.level > 3)", ann) == false)
    #expect(try outcome("identity.level > 3 ? open : open", ann) == nil)
  }

  @Test("A rule that compares an indexed key with a claim finds its objects by the index")
  func indexes() throws {
    let schema = try Schema(
      yaml: """
        entities:
          Note:
            access: { read: 'owner == identity.sub || "admin" in identity.roles' }
            keys: { owner: { type: string, indexed: true }, size: { type: integer } }
        """)
    var model = Model(schema: schema)
    let count = 2_000
    let operations = try (0..<count).map { number in
      Operation.create(
        try #require(Reference("Note/\(number)")), ["owner": .string("u\(number / 10)"), "size": .integer(1)])
    }
    _ = try model.commit(Transaction(operations))
    func found(_ claims: JSONObject, filter: String?) throws -> (count: Int, steps: Int) {
      var words = Query.Words(entity: "Note")
      words.filter = filter
      let query = try Query(words, in: schema, for: Viewer(claims: claims, in: schema))
      let work = ReadingWork(steps: .max)
      let found = try MeteredState(model.state, work).fetch(query, isSorted: true) {
        model.state.references(of: query.entity)
      }
      return (found.references.count, work.spentSteps)
    }
    let reader: JSONObject = ["sub": .string("u7"), "roles": .array([])]
    for filter in [nil, "size > 0"] {
      let mine = try found(reader, filter: filter)
      #expect(mine.count == 10 && mine.steps < count, "\(mine)")
    }
    #expect(try found(["sub": .string("u7"), "roles": .array([.string("admin")])], filter: nil).count == count)
    #expect(try found(["sub": .string("nobody"), "roles": .array([])], filter: nil).count == 0)
  }
}
