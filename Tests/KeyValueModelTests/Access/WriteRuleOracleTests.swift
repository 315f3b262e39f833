import KeyValueModel
import TestKit
import Testing

/// Random schemas with write rules, and random transactions of several writers, against the verdicts of
/// `WriteRuleWorld`.
@Suite("Write rules against an oracle") struct WriteRuleOracleTests {
  private static let rounds = 300
  private static let transactions = 40

  @Test("A transaction is applied or forbidden as the oracle says, through every side of a relationship")
  func everything() throws {
    var (applied, forbidden) = (0, 0)
    for round in 0..<Self.rounds {
      let random = SplitMix64(seed: seed, part: UInt64(round))
      var run = try WriteRuleRun(random, "seed \(seed), round \(round)")
      for _ in 0..<Self.transactions {
        if try run.commit() { applied += 1 } else { forbidden += 1 }
      }
    }
    #expect(applied > 1_000 && forbidden > 1_000, "\(applied) applied, \(forbidden) forbidden")
  }
}

/// One model with one world.
private struct WriteRuleRun {
  private let world: WriteRuleWorld
  private let name: String
  private var model: Model
  private var state = WriteRuleWorld.State()
  private var random: SplitMix64

  init(_ random: SplitMix64, _ name: String) throws {
    self.random = random
    world = WriteRuleWorld(using: &self.random)
    model = Model(schema: try Schema(yaml: world.schema))
    self.name = name + "\n" + world.schema
  }

  /// Commits a random transaction as a random identity, or as a requester whose writes no rule checks. Returns false if
  /// it was forbidden.
  mutating func commit() throws -> Bool {
    let isFree = random.chance(25)
    let identity = WriteRuleWorld.identities.randomElement(using: &random) ?? WriteRuleWorld.identities[0]
    var acts: [WriteRuleWorld.Act] = []
    var operations: [KeyValueModel.Operation] = []
    var draft = state
    for index in 0..<Int.random(in: 1...3, using: &random) {
      let made = acts.count
      try write(&acts, &operations, draft, isFirst: index == 0)
      for act in acts[made...] {
        draft = WriteRuleWorld.Verdict([act], on: draft, by: identity, in: world).state
      }
    }
    let verdict = WriteRuleWorld.Verdict(acts, on: state, by: identity, in: world)
    var transaction = Transaction(operations)
    if !isFree {
      let viewer = Viewer(claims: identity.claims, in: model.schema, isPermittedWithoutRule: true)
      transaction.access = WriteAccess(claims: identity.claims, viewer: viewer, in: model.schema)
    }
    let isAllowed = isFree || verdict.isAllowed
    let description = "\(name)\n\(identity)\n\(operations)"
    checkRefusals(transaction, isAllowed, description)
    do throws(ModelError) {
      _ = try model.commit(transaction)
      #expect(isAllowed, "\(description)\nwas applied")
      state = verdict.state
    } catch {
      #expect(!isAllowed && error.code == .forbidden, "\(description)\n\(error)")
    }
    try compare(description)
    return isAllowed
  }

  /// Expects that a transaction that fails for another reason reports that reason only if the rules allow it.
  private func checkRefusals(_ transaction: Transaction, _ isAllowed: Bool, _ description: String) {
    var impossible = transaction
    impossible.preconditions = [.impossible]
    var stale = transaction
    let touched = transaction.operations.first { state.objects[$0.reference.text] != nil }?.reference
    if let touched { stale.operations.append(.require(touched, 0)) } else { stale.preconditions = [.impossible] }
    for attempt in [impossible, stale] {
      var model = model
      do throws(ModelError) {
        _ = try model.commit(attempt)
        Issue.record("\(description)\nwas applied")
      } catch {
        #expect(error.code == (isAllowed ? .staleRevision : .forbidden), "\(description)\n\(error)")
      }
    }
  }

  /// Expects that the model has the links of the oracle.
  private func compare(_ description: String) throws {
    for (object, _) in state.objects {
      let reference = try ref(object)
      let record = try #require(model.state.record(reference), "\(description)\n\(object) is missing")
      for (index, key) in record.entity.keys.enumerated() where WriteRuleWorld.State.relation(object, key.name) != nil {
        var found: Set<String> = []
        switch model.state.value(of: record, reference, key: index) {
        case .reference(let target): found = [target.text]
        case .members(let list):
          for case .reference(let target) in list { found.insert(target.text) }
        default: break
        }
        #expect(found == state.targets(object, key.name), "\(description)\n\(object).\(key.name)")
      }
    }
  }

  // MARK: Writing

  private mutating func pick(_ entity: String, _ draft: WriteRuleWorld.State) -> String? {
    draft.objects.keys.filter { $0.hasPrefix(entity) }.sorted().randomElement(using: &random)
  }

  private mutating func attributes(of entity: String) -> [String: Value] {
    var values: [String: Value] = [:]
    switch entity {
    case "User":
      values["user"] = [.null, .string("ann"), .string("bob"), .string("eve")].randomElement(using: &random)
      if random.chance(50) { values["level"] = .integer(Int64.random(in: 0...6, using: &random)) }
    case "Post": values["open"] = .bool(random.chance(50))
    default: values["free"] = .bool(random.chance(50))
    }
    return values
  }

  /// Returns values for some relationships of an object.
  private mutating func links(
    of object: String, _ draft: WriteRuleWorld.State, percent: Int
  ) -> [String: Set<String>] {
    var links: [String: Set<String>] = [:]
    for (near, far) in WriteRuleWorld.relations.flatMap({ [($0.one, $0.other), ($0.other, $0.one)] })
    where near.entity == WriteRuleWorld.State.entity(object) && random.chance(percent) {
      var targets: Set<String> = []
      for _ in 0..<(near.isToMany ? 2 : 1) {
        if random.chance(80), let target = pick(far.entity, draft), target != object { targets.insert(target) }
      }
      links[near.key] = targets
    }
    return links
  }

  private static func json(_ object: String, _ attributes: [String: Value], _ links: [String: Set<String>])
    -> JSONObject
  {
    var body = JSONObject()
    for (key, value) in attributes.sorted(by: { $0.key < $1.key }) { body[key] = value }
    for (key, targets) in links.sorted(by: { $0.key < $1.key }) { body[key] = value(object, key, targets) }
    return body
  }

  private static func value(_ object: String, _ key: String, _ targets: Set<String>) -> Value {
    guard let (relation, isOne) = WriteRuleWorld.State.relation(object, key) else { return .null }
    if (isOne ? relation.one : relation.other).isToMany { return .array(targets.sorted().map(Value.string)) }
    return targets.first.map(Value.string) ?? .null
  }

  /// Adds one operation, in some cases followed by a lifetime.
  private mutating func write(
    _ acts: inout [WriteRuleWorld.Act], _ operations: inout [KeyValueModel.Operation], _ draft: WriteRuleWorld.State,
    isFirst: Bool
  ) throws {
    let entity = ["User", "User", "Post", "Post", "Desk", "Desk"].randomElement(using: &random) ?? "User"
    let object = "\(entity)/\(Int.random(in: 1...4, using: &random))"
    let reference = try ref(object)
    if draft.objects[object] == nil {
      // An object that the transaction has deleted is not created again.
      guard state.objects[object] == nil else { return }
      let (values, links) = (attributes(of: entity), links(of: object, draft, percent: 30))
      let body = Self.json(object, values, links)
      acts.append(.create(object, attributes: values, links: links))
      operations.append(random.chance(50) ? .create(reference, body) : .put(reference, body))
      if random.chance(20) { try addLifetime(&acts, &operations, object, draft) }
      return
    }
    switch Int.random(in: 0..<100, using: &random) {
    case ..<8:
      acts.append(.delete(object))
      operations.append(.delete(reference))
    case ..<25:
      try patch(&acts, &operations, object, draft)
      if random.chance(50) { try addLifetime(&acts, &operations, object, draft) }
    case ..<40 where isFirst:
      // Only as the first operation: for a later PUT, the rules are also evaluated as if it came first, when it resets
      // other keys.
      let (values, links) = (attributes(of: entity), links(of: object, draft, percent: 50))
      acts.append(.write(object, attributes: values, links: links, isPut: true))
      operations.append(.put(reference, Self.json(object, values, links)))
      if random.chance(20) { try addLifetime(&acts, &operations, object, draft) }
    case ..<68:
      let links = links(of: object, draft, percent: 50).sorted { $0.key < $1.key }
      guard let (key, targets) = links.randomElement(using: &random) else { return }
      acts.append(.write(object, attributes: [:], links: [key: targets], isPut: false))
      // Sets the key through a path too: the object at its end is written.
      if isFirst, let post = draft.targets(object, "posts").min(), entity == "User" {
        operations.append(.set(try ref(post), keyPath: "author.\(key)", Self.value(object, key, targets)))
      } else {
        operations.append(.set(reference, keyPath: key, Self.value(object, key, targets)))
      }
    default: try editMembers(&acts, &operations, object, draft, isFirst: isFirst)
    }
  }

  private mutating func patch(
    _ acts: inout [WriteRuleWorld.Act], _ operations: inout [KeyValueModel.Operation], _ object: String,
    _ draft: WriteRuleWorld.State
  ) throws {
    let values = random.chance(50) ? attributes(of: WriteRuleWorld.State.entity(object)) : [:]
    let links = links(of: object, draft, percent: 30)
    let body = Self.json(object, values, links)
    acts.append(.write(object, attributes: values, links: links, isPut: false))
    if random.chance(50) {
      operations.append(.patch(try ref(object), body))
    } else {
      let steps: [Value] = body.members.map { key, value in
        .object(["op": .string("add"), "path": .string("/\(key)"), "value": value])
      }
      operations.append(.jsonPatch(try ref(object), try JSONPatch(.array(steps))))
    }
  }

  private mutating func addLifetime(
    _ acts: inout [WriteRuleWorld.Act], _ operations: inout [KeyValueModel.Operation], _ object: String,
    _ draft: WriteRuleWorld.State
  ) throws {
    let lifetimes: [Lifetime] = [.seconds(30), .seconds(60), .seconds(60), .unlimited, .stream(3)]
    let lifetime = lifetimes.randomElement(using: &random) ?? .unlimited
    acts.append(.lifetime(object, lifetime))
    operations.append(.lifetime(try ref(object), lifetime))
  }

  /// Changes a to-many relationship with one of the operations for members.
  private mutating func editMembers(
    _ acts: inout [WriteRuleWorld.Act], _ operations: inout [KeyValueModel.Operation], _ object: String,
    _ draft: WriteRuleWorld.State, isFirst: Bool
  ) throws {
    let reference = try ref(object)
    let key = object.hasPrefix("Post") ? "likers" : random.chance(50) ? "posts" : "likes"
    guard !object.hasPrefix("Desk") else { return }
    let far = key == "likers" ? "User" : "Post"
    let present = draft.targets(object, key)
    let others = draft.objects.keys.filter { $0.hasPrefix(far) && !present.contains($0) && $0 != object }.sorted()
    let member = others.randomElement(using: &random)
    func add(_ members: Set<String>, _ operation: KeyValueModel.Operation, made: [String] = []) {
      acts.append(.members(object, key: key, members, made: made))
      operations.append(operation)
    }
    func values(_ references: [String]) -> [NewMember] { references.map { .value(.string($0)) } }

    switch Int.random(in: 0..<5, using: &random) {
    case 0:
      let free = (1...4).map { "\(far)/\($0)" }.first { draft.objects[$0] == nil && state.objects[$0] == nil }
      guard let name = free else { return }
      add(
        present.union([name]), .insert(reference, keyPath: key, [.object(try ref(name), [:])], at: nil), made: [name])
    case 1:
      guard let member else { return }
      add(present.union([member]), .insert(reference, keyPath: key, values([member]), at: nil))
    case 2:
      guard let gone = present.sorted().randomElement(using: &random) else { return }
      add(present.subtracting([gone]), .removeMembers(reference, keyPath: key, [.string(gone)]))
    case 3 where key == "posts":
      // The indexes are those of the state before the transaction.
      guard isFirst, case .members(let list) = model.state.value(of: reference, key: 2), let index = list.indices.first,
        case .reference(let gone) = list[index]
      else { return }
      if let member {
        add(
          present.subtracting([gone.text]).union([member]),
          .replace(reference, keyPath: key, at: [0], values([member])))
      } else {
        add(present.subtracting([gone.text]), .removeIndexes(reference, keyPath: key, [0]))
      }
    default:
      guard key != "posts" else { return }
      let mutation = SetMutation.allCases.randomElement(using: &random) ?? .union
      let named = Set([member, present.min()].compactMap(\.self))
      let result =
        switch mutation {
        case .union: present.union(named)
        case .minus: present.subtracting(named)
        case .intersect: present.intersection(named)
        case .set: named
        }
      add(result, .mutateSet(reference, keyPath: key, mutation, values(named.sorted())))
    }
  }
}
