import KeyValueModel
import KeywayServer
import TestKit
import Testing

/// Tokens that no key signed, and rules that are meaningless.
@Suite("Any token and any rule") struct AccessFuzzTests {
  @Test("A token that no key signed as it stands is refused, whatever it says")
  func anyToken() throws {
    let guarded = try GuardedServer()
    let foreign = try #require(DevelopmentKey(of: try KeySet(json: Array(DevelopmentKey.makeSet().utf8))))
    let admin = guarded.token("root", roles: ["keyway-admin"])
    let valid = [admin, guarded.token("alice", roles: ["reader"])]
    let parts = admin.split(separator: ".").map(String.init)
    let unsigned = ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOT05FIiwidHlwIjoiSldUIn0", "e30"].map { "\($0).\(parts[1])." }
    let corpus =
      valid + unsigned + [
        foreign.token(["sub": .string("root"), "exp": .integer(4_000_000_000)]), guarded.token("alice", for: -60),
        "\(parts[0]).\(parts[1])", ".\(parts[1]).\(parts[2])", "\(parts[0])..\(parts[2])",
      ]
    let pieces = [".", "..", "=", "==", "-", "_", "+", "/", "A", "e30", "eyJhbGciOiJub25lIn0", " ", ",", "Bearer "]
    let mutator = Mutator(corpus, pieces: pieces + parts)
    let failure = Fuzzer("tokens", rounds: 300).run(
      make: { random -> (token: String, isCookie: Bool) in
        // Only bytes that a header may contain: the fuzzer of HTTP tests the others.
        let visible = mutator.bytes(&random).map { (0x20...0x7E).contains($0) ? $0 : 0x21 }
        return (String(decoding: visible, as: UTF8.self), random.chance(30))
      },
      describe: { "\($0.isCookie ? "cookie" : "header") \($0.token)" }
    ) { input in
      let isWhole = input.token.allSatisfy { $0 != " " && $0 != ";" && $0 != "," }
      let headers =
        input.isCookie && isWhole
        ? ["Cookie": "keyway_session=\(input.token)"] : ["Authorization": "Bearer \(input.token)"]
      let response = try guarded.client.send("GET", "/v1/objects/Account/1", headers)
      // Spaces around a token are not part of it.
      let bare = String(input.token.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
      // The cookie of a session has no token.
      if headers["Authorization"] != nil, valid.contains(bare) {
        return [200, 404].contains(response.status) ? nil : "a good token is answered \(response.status)"
      }
      return response.status == 401 ? nil : "it is answered \(response.status)"
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }

  private static let identities: [(name: String, roles: [String], level: Int64)] = [
    ("ann", [], 1), ("bob", ["boss"], 5),
  ]
  private static let objects = [
    ("Team/1", #"{"open":true,"code":"a"}"#), ("Team/2", #"{"open":false,"code":"b"}"#),
    ("Person/1", #"{"user":"ann","name":"A","secret":"x","team":"Team/1"}"#),
    ("Person/2", #"{"user":"bob","name":"B","secret":"y","team":"Team/2"}"#), ("Person/3", "{}"),
    ("Doc/1", #"{"user":"ann","text":"t","level":1,"owner":"Person/1"}"#),
    ("Doc/2", #"{"level":7,"owner":"Person/2","links":["Doc/1"]}"#), ("Doc/3", #"{"links":["Doc/2","Doc/1"]}"#),
  ]

  @Test("With any rule, fetches, live queries and objects show the same; a text that is not a rule is refused")
  func anyRule() throws {
    var worlds = SplitMix64(seed: 1)
    let corpus = (0..<40).flatMap { _ in
      let world = RuleWorld(using: &worlds)
      return [world.team.text, world.person.text, world.doc.text, world.secret.text]
    }
    let mutator = Mutator(
      corpus,
      pieces: [
        " && ", " || ", "!", "(", ")", " ? ", " : ", "identity", "identity.sub", "identity.roles", "this", "before",
        "null",
        "true", "false", "owner", "team", "members", "user", "level", " == ", " in ", ".exists(x, ", ".all(x, ",
        "size(",
        "has(identity.level)", "identity.level + ", " / 0", "[0]", "['a']", "matches('a*')", "links", ".team.open", "1",
      ], maximumChanges: 3)
    let failure = Fuzzer("rules", rounds: 60).run(
      make: { random in (0..<4).map { _ in String(decoding: mutator.bytes(&random), as: UTF8.self) } },
      describe: { $0.joined(separator: " | ") }
    ) { rules in
      // One invalid rule would keep the others from being tested.
      let rules = rules.enumerated().map { place, rule in Self.isRule(rule, at: place) ? rule : "level > 1" }
      guard let schema = Self.schema(rules) else { return "these are no rules" }
      return try Self.complaint(of: try GuardedServer(schema: schema, objects: Self.objects))
    }
    #expect(failure == nil, "\(failure?.description ?? "")")
  }

  private static func isRule(_ text: String, at place: Int) -> Bool {
    var rules = Array(repeating: "true", count: 4)
    rules[place] = text
    guard let schema = schema(rules) else { return false }
    return (try? Schema(yaml: schema)) != nil
  }

  /// Makes the schema with these rules; nil if they cannot be written in one line of YAML.
  private static func schema(_ rules: [String]) -> String? {
    guard rules.allSatisfy({ $0.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value < 0x7F } }) else { return nil }
    let quoted = rules.map {
      "'" + $0.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
    }
    return """
      access: { create: 'false' }
      entities:
        Team:
          access: { read: \(quoted[0]) }
          keys:
            open: { type: boolean }
            code: { type: string }
            level: { type: integer, default: 2 }
            members: { toMany: Person, inverse: team }
        Person:
          access: { read: \(quoted[1]) }
          keys:
            user: { type: string }
            name: { type: string }
            level: { type: integer }
            secret: { type: string }
            team: { toOne: Team, inverse: members }
        Doc:
          access: { read: \(quoted[2]), update: \(quoted[3]) }
          keys:
            user: { type: string, indexed: true }
            text: { type: string }
            level: { type: integer }
            owner: { toOne: Person }
            links: { toMany: Doc }
      """
  }

  /// Describes an inconsistency between the responses to each identity; nil if there is none.
  private static func complaint(of guarded: GuardedServer) throws -> String? {
    let client = guarded.client
    let headers = [[:]] + identities.map { guarded.bearer($0.name, roles: $0.roles, ["level": .integer($0.level)]) }
    for header in headers {
      for entity in ["Team", "Person", "Doc"] {
        let fetch = try client.send("GET", "/v1/objects/\(entity)", header)
        guard fetch.status == 200 else { return "a fetch is answered \(fetch.status)" }
        let rows = fetch.json["objects"].items
        guard fetch.json["count"].whole == rows.count else { return "\(rows.count) rows, counted otherwise" }
        let stream = try client.stream("/v1/objects/\(entity)", header)
        guard try first("results", of: stream).json["objects"].items == rows else { return "a live query shows others" }
        for (reference, _) in objects where reference.hasPrefix(entity) {
          let row = rows.first { $0["@ref"].text == reference }
          let object = try client.send("GET", "/v1/objects/\(reference)", header)
          guard [200, 401, 404].contains(object.status) else { return "\(reference) is answered \(object.status)" }
          guard (object.status == 200) == (row != nil) else {
            return "\(reference) is \(object.status) and its row not"
          }
          if let row, object.json != row { return "\(reference) is \(object.text), in its row \(row)" }
        }
      }
      let write = try client.send("PATCH", "/v1/objects/Doc/1", header, body: "{}")
      guard [200, 204, 401, 403, 404].contains(write.status) else { return "a write is answered \(write.status)" }
    }
    return nil
  }
}
