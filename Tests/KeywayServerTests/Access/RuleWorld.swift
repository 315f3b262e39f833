import KeyValueModel
import TestKit

/// A schema with random rules, several identities, and a naive oracle that decides what each may read. The oracle has
/// the rules as closures over plain dictionaries: it shares nothing with the server's evaluation of rules.
struct RuleWorld {
  /// An object as an admin reads it.
  typealias Object = [String: Value]
  /// All objects of one revision, by their references.
  typealias State = [String: Object]

  /// An identity that sends requests.
  struct Identity: Sendable {
    let name: String?
    var roles: [String] = []
    var level = 0
  }

  /// A rule in both languages.
  struct Rule: Sendable {
    let text: String
    let holds: @Sendable (_ object: Object, _ state: State, _ identity: Identity) -> Bool
  }

  static let identities = [
    Identity(name: nil), Identity(name: "ann", level: 1), Identity(name: "bob", level: 5),
    Identity(name: "eve", roles: ["boss"], level: 9),
  ]

  private static func member(_ object: Object?, _ key: String, _ state: State) -> Object? {
    object?[key]?.text.flatMap { state[$0] }
  }

  private static let all = Rule(text: "true") { _, _, _ in true }
  private static let signedIn = Rule(text: "identity != null") { _, _, identity in identity.name != nil }
  private static let boss = Rule(text: #""boss" in identity.roles"#) { _, _, identity in
    identity.roles.contains("boss")
  }

  private static let teamRules = [
    all, signedIn,
    Rule(text: "open") { object, _, _ in object["open"] == .bool(true) },
    Rule(text: "members.exists(m, m.user == identity.sub)") { object, state, identity in
      identity.name != nil
        && (object["members"]?.items ?? []).contains { state[$0.text ?? ""]?["user"]?.text == identity.name }
    },
  ]
  private static let personRules = [
    all, signedIn, boss,
    Rule(text: "user == identity.sub") { object, _, identity in
      identity.name != nil && object["user"]?.text == identity.name
    },
    Rule(text: "team != null && team.open || user == identity.sub") { object, state, identity in
      member(object, "team", state)?["open"] == .bool(true)
        || identity.name != nil && object["user"]?.text == identity.name
    },
  ]
  private static let docRules = [
    all,
    Rule(text: "owner.user == identity.sub") { object, state, identity in
      identity.name != nil && member(object, "owner", state)?["user"]?.text == identity.name
    },
    Rule(text: #"level <= identity.level || "boss" in identity.roles"#) { object, _, identity in
      identity.roles.contains("boss") || identity.name != nil && (object["level"]?.whole ?? .max) <= identity.level
    },
    Rule(text: "user == identity.sub || identity != null && user == null") { object, _, identity in
      identity.name != nil && (object["user"]?.text == identity.name || object["user"]?.isNull ?? true)
    },
    Rule(text: "owner.team.open && links.exists(l, l.level > 2)") { object, state, _ in
      member(member(object, "owner", state), "team", state)?["open"] == .bool(true)
        && (object["links"]?.items ?? []).contains { (state[$0.text ?? ""]?["level"]?.whole ?? 0) > 2 }
    },
  ]
  private static let keyRules = [
    all, signedIn, boss,
    Rule(text: "identity.level > 3") { _, _, identity in
      identity.name != nil && identity.level > 3
    },
  ]

  let team, person, doc, secret: Rule

  init(using random: inout SplitMix64) {
    team = Self.teamRules.randomElement(using: &random) ?? Self.all
    person = Self.personRules.randomElement(using: &random) ?? Self.all
    doc = Self.docRules.randomElement(using: &random) ?? Self.all
    secret = Self.keyRules.randomElement(using: &random) ?? Self.all
  }

  var schema: String {
    """
    entities:
      Team:
        access: { read: '\(team.text)' }
        keys:
          open: { type: boolean, default: false }
          code: { type: string }
          members: { toMany: Person, inverse: team }
      Person:
        access:
          read: '\(person.text)'
          keys: { secret: { read: '\(secret.text)' } }
        keys:
          user: { type: string }
          name: { type: string }
          secret: { type: string }
          team: { toOne: Team, inverse: members }
      Doc:
        access: { read: '\(doc.text)' }
        keys:
          user: { type: string, indexed: true }
          text: { type: string }
          level: { type: integer, default: 0 }
          owner: { toOne: Person }
          links: { toMany: Doc }
          label: { computed: owner.name }
    """
  }

  // MARK: The oracle

  func mayRead(_ reference: String, _ state: State, _ identity: Identity) -> Bool {
    guard let object = state[reference] else { return false }
    return rule(of: reference).holds(object, state, identity)
  }

  private func rule(of reference: String) -> Rule {
    switch reference.split(separator: "/").first {
    case "Team": team
    case "Person": person
    default: doc
    }
  }

  /// Returns the keys of an object that an identity sees, with their values; nil if it may not read the object.
  func seen(_ reference: String, _ state: State, _ identity: Identity) -> Object? {
    guard mayRead(reference, state, identity), var object = state[reference] else { return nil }
    if reference.hasPrefix("Person"), !secret.holds([:], state, identity) { object["secret"] = nil }
    object["@revision"] = nil
    return object
  }

  /// Returns the value of a path of to-ones for an identity.
  func value(_ reference: String, _ path: String, _ state: State, _ identity: Identity) -> Value {
    var current = reference
    var value = Value.null
    for key in path.split(separator: ".").map(String.init) {
      guard let object = seen(current, state, identity) else { return .null }
      value = object[key] ?? .null
      current = value.text ?? ""
    }
    return value
  }
}
