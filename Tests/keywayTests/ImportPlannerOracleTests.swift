import KeyValueModel
import OrderedCollections
import TestKit
import Testing

@testable import keyway

/// Random files of nodes against a naive store that refuses references to missing objects.
@Suite("Any file that can be imported is, whatever its order and its batches")
struct ImportPlannerOracleTests {
  /// A store of nodes with `need` (required), `peer` (its own inverse), `group` and `members` (ordered; inverses), and
  /// `friends` (no inverse). It updates inverses as the server does.
  private struct Store {
    var nodes: [Reference: [String: [Reference]]] = [:]

    mutating func apply(_ operation: PlannedOperation) {
      switch operation.kind {
      case .create(let object):
        #expect(nodes[operation.object] == nil, "\(operation.object) is made twice")
        nodes[operation.object] = [:]
        for (key, value) in object.members { set(operation.object, key, value) }
        #expect(nodes[operation.object]?["need"] != nil, "\(operation.object) is made without what it needs")
      case .patch: Issue.record("nothing is replaced here")
      case .set(let key, let value): set(operation.object, key, value)
      }
    }

    private mutating func set(_ owner: Reference, _ key: String, _ value: Value) {
      var targets: [Reference] = []
      switch value {
      case .reference(let reference): targets = [reference]
      case .array(let elements):
        targets = elements.compactMap { if case .reference(let reference) = $0 { reference } else { nil } }
      default: Issue.record("\(key) is set to \(value.json)")
      }
      #expect(nodes[owner] != nil, "\(owner) is written to before it is made")
      for target in targets { #expect(nodes[target] != nil, "\(target) is named before it is made") }
      switch key {
      case "peer": setPeer(owner, targets[0])
      case "group": setGroup(owner, targets[0])
      case "members":
        for member in nodes[owner]?["members"] ?? [] where !targets.contains(member) { nodes[member]?["group"] = nil }
        for member in targets { setGroup(member, owner) }
        nodes[owner]?["members"] = targets
      default: nodes[owner]?[key] = targets
      }
    }

    private mutating func setPeer(_ owner: Reference, _ peer: Reference) {
      for node in [owner, peer] {
        if let other = nodes[node]?["peer"]?.first { nodes[other]?["peer"] = nil }
      }
      nodes[owner]?["peer"] = [peer]
      nodes[peer]?["peer"] = [owner]
    }

    private mutating func setGroup(_ member: Reference, _ group: Reference) {
      if nodes[member]?["group"] == [group] { return }
      if let old = nodes[member]?["group"]?.first { nodes[old]?["members"]?.removeAll { $0 == member } }
      nodes[member]?["group"] = [group]
      nodes[group, default: [:]]["members", default: []].append(member)
    }
  }

  private typealias World = [Reference: [String: [Reference]]]

  /// Makes a consistent world of so many nodes. A node needs itself or an earlier one, so it can be created.
  private static func world(_ count: Int, _ generator: inout SplitMix64) -> World {
    let references = (0..<count).compactMap { Reference("N/\($0)") }
    var world: World = [:]
    for index in references.indices {
      let needed = Bool.random(using: &generator) ? index : Int.random(in: 0...index, using: &generator)
      world[references[index]] = ["need": [references[needed]]]
      let friends = references.filter { _ in Int.random(in: 0..<count, using: &generator) < 2 }
      if !friends.isEmpty { world[references[index]]?["friends"] = friends.shuffled(using: &generator) }
    }
    let pairs = references.shuffled(using: &generator)
    for index in stride(from: 0, to: count - 1, by: 2) where Bool.random(using: &generator) {
      world[pairs[index]]?["peer"] = [pairs[index + 1]]
      world[pairs[index + 1]]?["peer"] = [pairs[index]]
    }
    for member in references.shuffled(using: &generator) where Bool.random(using: &generator) {
      guard let group = references.randomElement(using: &generator) else { continue }
      world[member]?["group"] = [group]
      world[group]?["members", default: []].append(member)
    }
    return world
  }

  private static func rows(_ world: World, _ generator: inout SplitMix64) -> [ObjectLine] {
    let inverses = ["peer": "peer", "group": "members", "members": "group"]
    let order = world.keys.sorted().shuffled(using: &generator)
    return order.enumerated().map { index, reference in
      let links = (world[reference] ?? [:]).sorted { $0.key < $1.key }.map { key, targets in
        ImportLink(
          line: index + 1, owner: reference, key: key, targets: targets,
          isToMany: key == "members" || key == "friends", isRequired: key == "need", inverse: inverses[key])
      }
      return ObjectLine(line: index + 1, reference: reference, links: links)
    }
  }

  @Test("Nothing is named before it is there, and the store is the file's in the end", arguments: 0..<200)
  func random(_ round: UInt64) throws {
    var generator = SplitMix64(seed: seed &+ round)
    let world = Self.world(Int.random(in: 1...40, using: &generator), &generator)
    let rows = Self.rows(world, &generator)
    var planner = ImportPlanner()
    var store = Store()
    var start = 0
    while start < rows.count {
      let end = min(rows.count, start + Int.random(in: 1...10, using: &generator))
      let present = Set(store.nodes.keys)
      for operation in try planner.plan(Array(rows[start..<end]), present: present) { store.apply(operation) }
      start = end
    }
    try planner.finish()
    #expect(planner.heldReferences == 0)
    let nodes = store.nodes.mapValues { $0.filter { !$0.value.isEmpty } }
    #expect(nodes == world, "KEYWAY_TEST_SEED=\(seed), round \(round)")
  }

  @Test("A circle of needs is found wherever its lines stand", arguments: 0..<100)
  func circles(_ round: UInt64) throws {
    var generator = SplitMix64(seed: seed &+ round)
    var world = Self.world(Int.random(in: 2...30, using: &generator), &generator)
    let circle = world.keys.sorted().shuffled(using: &generator).prefix(Int.random(in: 2...5, using: &generator))
    for (node, next) in zip(circle, circle.dropFirst() + circle.prefix(1)) { world[node]?["need"] = [next] }
    let rows = Self.rows(world, &generator)
    let size = Int.random(in: 1...10, using: &generator)
    var planner = ImportPlanner()
    var present: Set<Reference> = []
    let error = #expect(throws: ImportError.self, "KEYWAY_TEST_SEED=\(seed), round \(round)") {
      for start in stride(from: 0, to: rows.count, by: size) {
        let plan = try planner.plan(Array(rows[start..<min(rows.count, start + size)]), present: present)
        present.formUnion(plan.map(\.object))
      }
    }
    for node in circle { #expect(error?.reason.contains("\(node) (line ") == true) }
    #expect(error?.line == rows.filter { circle.contains($0.reference) }.map(\.line).max())
  }
}
