import KeyValueModel
import TestKit

/// A schema with relationships of every kind and random write rules, and an oracle that decides which writes are
/// allowed. The oracle stores links as sets of pairs, and the rules as closures: it shares nothing with the model's
/// evaluation of rules.
struct WriteRuleWorld {
  /// A writer: anonymous, or with claims.
  struct Identity: Sendable {
    let name: String?
    var isBoss = false
    var level = 0

    /// Returns true if a user object has this identity's name.
    func isUser(_ object: String, _ state: State) -> Bool {
      name.map { state[object, "user"] == .string($0) } ?? false
    }

    var claims: JSONObject? {
      name.map {
        ["sub": .string($0), "level": .integer(Int64(level)), "roles": .array(isBoss ? [.string("boss")] : [])]
      }
    }
  }

  /// A relationship, with the key of each side.
  struct Relation: Hashable, Sendable {
    /// One side: a key of an entity.
    struct Side: Hashable, Sendable {
      let entity: String
      let key: String
      var isToMany = false
    }

    let one: Side
    let other: Side
  }

  /// Objects, their leases, and the links between them.
  struct State {
    struct Link: Hashable {
      let relation: Relation
      let one: String
      let other: String
    }

    var objects: [String: [String: Value]] = [:]
    var leases: [String: Lifetime] = [:]
    var links: Set<Link> = []
  }

  /// A rule in both languages.
  struct Rule: Sendable {
    let text: String
    /// True if the rule reads only the identity. It is then evaluated before any change.
    var readsIdentityAlone = false
    let holds: @Sendable (_ object: String, _ state: State, _ before: State, _ identity: Identity) -> Bool
  }

  static let identities = [
    Identity(name: nil), Identity(name: "ann", level: 1), Identity(name: "bob", level: 5),
    Identity(name: "eve", isBoss: true, level: 3),
  ]
  static let relations = [
    Relation(
      one: .init(entity: "Post", key: "author"), other: .init(entity: "User", key: "posts", isToMany: true)),
    Relation(one: .init(entity: "User", key: "desk"), other: .init(entity: "Desk", key: "owner")),
    Relation(one: .init(entity: "User", key: "spouse"), other: .init(entity: "User", key: "spouse")),
    Relation(
      one: .init(entity: "User", key: "likes", isToMany: true),
      other: .init(entity: "Post", key: "likers", isToMany: true)),
  ]
  /// The attributes of each entity, each with its default.
  static let attributes: [String: [String: Value]] = [
    "User": ["user": .null, "level": .integer(0)], "Post": ["open": .bool(false)], "Desk": ["free": .bool(false)],
  ]

  /// The rules by `Entity.action`, those by `Entity.key`, and those by `Entity.key` that are evaluated through the
  /// inverse.
  let rules, keys, inverses: [String: Rule]
  /// True if the posts of a user end with the user.
  let isCascading: Bool

  init(using random: inout SplitMix64) {
    var rules: [String: Rule] = [:]
    for (entity, choices) in Self.updates.sorted(by: { $0.key < $1.key }) {
      for action in ["create", "update", "delete"] { rules["\(entity).\(action)"] = choices.random(&random) }
    }
    var keys: [String: Rule] = [:]
    var inverses: [String: Rule] = [:]
    for relation in Self.relations {
      for side in [relation.one, relation.other] {
        let name = "\(side.entity).\(side.key)"
        if random.chance(40) { keys[name] = Self.ofKeys.random(&random) }
        if relation.one.isToMany, relation.other.isToMany, random.chance(50) {
          inverses[name] = Self.ofKeys.random(&random)
        }
      }
    }
    (self.rules, self.keys, self.inverses) = (rules, keys, inverses)
    isCascading = random.chance(50)
  }

  var schema: String {
    func access(_ entity: String) -> String {
      var lines = ["create", "update", "delete"].map { "\($0): '\(rules["\(entity).\($0)"]?.text ?? "true")'" }
      let names = Set(keys.keys).union(inverses.keys).filter { $0.hasPrefix(entity) }.sorted()
      let texts = names.map { name in
        let words = [keys[name].map { "update: '\($0.text)'" }, inverses[name].map { "inverse: '\($0.text)'" }]
        return "\(name.split(separator: ".")[1]): { \(words.compactMap(\.self).joined(separator: ", ")) }"
      }
      if !texts.isEmpty { lines.append("keys: { \(texts.joined(separator: ", ")) }") }
      return "{ \(lines.joined(separator: ", ")) }"
    }
    return """
      access: { read: 'true' }
      entities:
        User:
          access: \(access("User"))
          keys:
            user: { type: string }
            level: { type: integer, default: 0 }
            posts: { toMany: Post, ordered: true, inverse: author, delete: \(isCascading ? "cascade" : "nullify") }
            likes: { toMany: Post, inverse: likers }
            desk: { toOne: Desk, inverse: owner }
            spouse: { toOne: User, inverse: spouse }
        Post:
          access: \(access("Post"))
          keys:
            open: { type: boolean, default: false }
            author: { toOne: User, inverse: posts }
            likers: { toMany: User, inverse: likes }
        Desk:
          access: \(access("Desk"))
          keys:
            free: { type: boolean, default: false }
            owner: { toOne: User, inverse: desk }
      """
  }
}

// MARK: - Rules

extension WriteRuleWorld {
  private static let all = Rule(text: "true", readsIdentityAlone: true) { _, _, _, _ in true }
  private static let signedIn = Rule(text: "identity != null", readsIdentityAlone: true) { _, _, _, identity in
    identity.name != nil
  }
  private static let boss = Rule(text: #""boss" in identity.roles"#, readsIdentityAlone: true) { _, _, _, identity in
    identity.isBoss
  }

  private static let ofKeys = [
    all, signedIn, boss,
    Rule(text: "identity.level > 3") { _, _, _, identity in identity.name != nil && identity.level > 3 },
  ]
  private static let updates = [
    "User": [
      all, boss,
      Rule(text: "user == identity.sub") { object, state, _, identity in identity.isUser(object, state) },
      Rule(text: "level <= identity.level") { object, state, _, identity in
        guard identity.name != nil, case .integer(let level)? = state[object, "level"] else { return false }
        return level <= identity.level
      },
      Rule(text: "desk == null || desk.free") { object, state, _, _ in
        state.target(object, "desk").map { state[$0, "free"] == .bool(true) } ?? true
      },
      Rule(text: "spouse == null || user == identity.sub") { object, state, _, identity in
        state.target(object, "spouse") == nil || identity.isUser(object, state)
      },
    ],
    "Post": [
      all, signedIn,
      Rule(text: "author.user == identity.sub") { object, state, _, identity in
        state.target(object, "author").map { identity.isUser($0, state) } ?? false
      },
      Rule(text: "author == null || author.user == identity.sub") { object, state, _, identity in
        state.target(object, "author").map { identity.isUser($0, state) } ?? true
      },
      Rule(text: "open") { object, state, _, _ in state[object, "open"] == .bool(true) },
      Rule(text: "likers.exists(l, l.user == identity.sub)") { object, state, _, identity in
        state.targets(object, "likers").contains { identity.isUser($0, state) }
      },
    ],
    "Desk": [
      all, signedIn,
      Rule(text: "free") { object, state, _, _ in state[object, "free"] == .bool(true) },
      Rule(text: "owner == null || owner.user == identity.sub") { object, state, _, identity in
        state.target(object, "owner").map { identity.isUser($0, state) } ?? true
      },
    ],
  ]
}

extension Array {
  fileprivate func random(_ random: inout SplitMix64) -> Element? { randomElement(using: &random) }
}

// MARK: - The state

extension WriteRuleWorld.State {
  static func entity(_ reference: String) -> String { String(reference.prefix { $0 != "/" }) }

  /// Returns the relationship that a key is a side of, with true if it is the first side.
  static func relation(_ object: String, _ key: String) -> (relation: WriteRuleWorld.Relation, isOne: Bool)? {
    let name = entity(object)
    for relation in WriteRuleWorld.relations {
      if relation.one.entity == name, relation.one.key == key { return (relation, true) }
      if relation.other.entity == name, relation.other.key == key { return (relation, false) }
    }
    return nil
  }

  subscript(object: String, key: String) -> Value? { objects[object]?[key] }

  /// Returns the objects that a key of an object leads to.
  func targets(_ object: String, _ key: String) -> Set<String> {
    guard let (relation, isOne) = Self.relation(object, key) else { return [] }
    var found: Set<String> = []
    for link in links where link.relation == relation {
      if link.one == object, isOne || relation.one == relation.other { found.insert(link.other) }
      if link.other == object, !isOne || relation.one == relation.other { found.insert(link.one) }
    }
    return found
  }

  func target(_ object: String, _ key: String) -> String? { targets(object, key).first }

  /// Makes a key lead to these objects and to no others. A to-one, on either side, drops the object that it led to.
  mutating func link(_ object: String, _ key: String, to targets: Set<String>) {
    guard let (relation, isOne) = Self.relation(object, key) else { return }
    let far = isOne ? relation.other : relation.one
    let present = self.targets(object, key)
    func touches(_ link: Link, _ reference: String, isNear: Bool) -> Bool {
      guard link.relation == relation else { return false }
      if relation.one == relation.other { return link.one == reference || link.other == reference }
      return (isOne == isNear ? link.one : link.other) == reference
    }
    for gone in present.subtracting(targets) {
      links = links.filter { !(touches($0, object, isNear: true) && touches($0, gone, isNear: false)) }
    }
    for target in targets.subtracting(present) {
      if !far.isToMany { links = links.filter { !touches($0, target, isNear: false) } }
      links.insert(
        isOne
          ? Link(relation: relation, one: object, other: target)
          : Link(relation: relation, one: target, other: object))
    }
  }

  mutating func remove(_ object: String) {
    objects[object] = nil
    leases[object] = nil
    links = links.filter { $0.one != object && $0.other != object }
  }
}
