import TestKit
import Testing

@testable import KeyValueModel

@Suite struct RecordTreeTests {
  /// Masks of the hash bits that are used: all, the ends, and none, with which all hashes are equal.
  static let masks: [UInt64] = [.max, .max << 58, .max << 52, 0xFFF, 0xF0, 0]

  @Test("after any changes it is what a dictionary is, and so are its copies", arguments: masks)
  func random(mask: UInt64) throws {
    let world = try RecordWorld(names: mask == .max ? 3000 : 300)
    var random = SplitMix64(seed: seed &+ mask)
    var (tree, oracle) = (RecordTree(hashMask: mask), [Reference: Revision]())
    var copies: [(tree: RecordTree, oracle: [Reference: Revision])] = []
    for step in 1...6000 {
      // Grows for a while, then shrinks, and again.
      let isGrowing = (step / 1500).isMultiple(of: 2)
      let name = try #require(world.names.randomElement(using: &random))
      if random.chance(isGrowing ? 75 : 25) {
        let old = tree.update(world.record(name, UInt64(step)))
        #expect(old?.revision == oracle.updateValue(UInt64(step), forKey: name), "seed \(seed)")
      } else {
        #expect(tree.remove(name)?.revision == oracle.removeValue(forKey: name), "seed \(seed)")
      }
      #expect(tree.count == oracle.count, "seed \(seed)")
      if step.isMultiple(of: 300) { try world.expect(tree, oracle) }
      if random.chance(2) { copies.append((tree, oracle)) }
    }
    for copy in copies { try world.expect(copy.tree, copy.oracle) }
    for name in Array(oracle.keys) { #expect(tree.remove(name)?.reference == name, "seed \(seed)") }
    #expect(tree.nodeCount == 0)
  }

  @Test("made at once it is what a dictionary is, and stays so under any changes", arguments: masks)
  func building(mask: UInt64) throws {
    var random = SplitMix64(seed: seed &+ mask)
    for count in [0, 1, 16, 17, 300, mask == .max ? 20_000 : 301] {
      let world = try RecordWorld(names: count)
      let lists = (0..<4).map { list in
        world.names.indices.filter { $0 % 4 == list }.shuffled(using: &random).map {
          RecordTree.Entry(world.record(world.names[$0], 1), mask: mask)
        }
      }
      var tree = try RecordTree(sorted: .joined(inHashOrder: lists), hashMask: mask)
      var oracle = Dictionary(uniqueKeysWithValues: world.names.map { ($0, Revision(1)) })
      try world.expect(tree, oracle)
      let (copy, former) = (tree, oracle)
      for name in world.names.shuffled(using: &random) {
        switch Int.random(in: 0..<3, using: &random) {
        case 0:
          tree.update(world.record(name, 2))
          oracle[name] = 2
        case 1:
          tree.remove(name)
          oracle[name] = nil
        default:
          #expect(tree.change(name) { $0.noteSetting(by: 3) })
          oracle[name] = 3
        }
      }
      try world.expect(tree, oracle)
      try world.expect(copy, former)
    }
  }

  @Test("made at once it takes no name twice", arguments: masks)
  func repetition(mask: UInt64) throws {
    var random = SplitMix64(seed: seed &+ mask)
    let world = try RecordWorld(names: 100)
    let twice = try #require(world.names.randomElement(using: &random))
    let entries = (world.names + [twice]).shuffled(using: &random).map {
      RecordTree.Entry(world.record($0, 1), mask: mask)
    }
    let error = #expect(throws: RecordTree.Repetition.self) {
      _ = try RecordTree(sorted: .joined(inHashOrder: [entries]), hashMask: mask)
    }
    #expect(error?.reference == twice, "seed \(seed)")
  }

  @Test("lists are joined in the order of hashes", arguments: [0, 1, 63, 128, 5000])
  func order(count: Int) throws {
    var random = SplitMix64(seed: seed)
    let numbers = (0..<count).map { $0.isMultiple(of: 5) ? UInt64(7) : random.next() }
    let lists = [numbers[..<(count / 3)], numbers[(count / 3)...], []].map { $0.map(Number.init) }
    #expect([Number].joined(inHashOrder: lists).map(\.order) == numbers.sorted(), "seed \(seed)")
  }

  @Test("many objects fill their buckets by half and more, and leave nothing behind when they go")
  func occupancy() throws {
    let world = try RecordWorld(names: 30_000)
    var tree = RecordTree()
    #expect(tree.nodeCount == 0)
    var random = SplitMix64(seed: seed)
    for name in world.names { tree.update(world.record(name, 1)) }
    #expect(tree.checkInvariants() == [], "seed \(seed)")
    #expect(tree.nodeCount < 30_000 / 7)
    for (number, name) in world.names.shuffled(using: &random).enumerated() {
      tree.remove(name)
      if number.isMultiple(of: 5000) { #expect(tree.checkInvariants() == [], "seed \(seed)") }
      if number == 29_900 { #expect(tree.nodeCount < 99) }
    }
    #expect(tree.nodeCount == 0)
  }

  @Test("equal hashes cost no more than time: all are found, and all go", arguments: [17, 40, 500])
  func equalHashes(count: Int) throws {
    let world = try RecordWorld(names: count)
    var tree = RecordTree(hashMask: 0)
    for name in world.names { #expect(tree.update(world.record(name, 1)) == nil) }
    let copy = tree
    for name in world.names { #expect(tree.update(world.record(name, 2))?.revision == 1) }
    #expect(Set(tree.references) == Set(world.names))
    #expect(tree.checkInvariants() == [])
    for name in world.names { #expect(tree.remove(name)?.revision == 2) }
    #expect(tree.nodeCount == 0)
    #expect(copy.count == count && copy.allSatisfy { $0.value.revision == 1 })
  }

  @Test("what is not there is not found, nor taken away")
  func absent() throws {
    let world = try RecordWorld(names: 100)
    var tree = RecordTree()
    #expect(tree[world.names[0]] == nil)
    #expect(tree.remove(world.names[0]) == nil)
    for name in world.names.dropFirst() { tree.update(world.record(name, 1)) }
    #expect(tree[world.names[0]] == nil)
    #expect(tree.remove(world.names[0]) == nil)
    #expect(!tree.change(world.names[0]) { _ in })
    #expect(tree.count == 99 && tree.checkInvariants() == [])
  }

  @Test("a record goes with the last tree that has it", arguments: [UInt64.max, 0xF0, 0])
  func lifetimes(mask: UInt64) throws {
    let world = try RecordWorld(names: 200)
    var watch: [Weak] = []
    func fill(_ tree: inout RecordTree, _ revision: Revision) {
      for name in world.names {
        let lease = Lease(.seconds(1), revision: revision, deadline: 1)
        watch.append(Weak(lease: lease))
        tree.update(world.record(name, revision, lease))
      }
    }
    var tree = RecordTree(hashMask: mask)
    fill(&tree, 1)
    var copy = tree
    fill(&copy, 2)
    #expect(watch.allSatisfy { $0.lease != nil })
    for name in world.names.prefix(100) { tree.remove(name) }
    #expect(watch.count { $0.lease != nil } == 300)
    copy = tree
    #expect(watch.count { $0.lease != nil } == 100)
    for name in world.names { copy.remove(name) }
    #expect(watch.count { $0.lease != nil } == 100)
    tree = copy
    #expect(watch.allSatisfy { $0.lease == nil })
  }

  @Test("threads read copies while the next is made")
  func threads() async throws {
    let world = try RecordWorld(names: 2000)
    var tree = RecordTree()
    for name in world.names { tree.update(world.record(name, 0)) }
    await withTaskGroup(of: Bool.self) { group in
      for round in 1...60 {
        for name in world.names[(round * 30)..<(round * 30 + 60)] { tree.update(world.record(name, UInt64(round))) }
        for name in world.names[..<(round * 30)] { tree.remove(name) }
        group.addTask { [tree] in
          let isFound = world.names.enumerated().allSatisfy { number, name in
            (tree[name] != nil) == (number >= round * 30)
          }
          return isFound && tree.count { $0.value.revision == UInt64(round) } == 60 && tree.checkInvariants() == []
        }
      }
      for await isRight in group { #expect(isRight) }
    }
  }
}

private struct Number: HashOrdered {
  let order: UInt64
}

/// Names, and the schema of the records with these names.
private struct RecordWorld {
  let names: [Reference]
  private let schema: Schema

  init(names count: Int) throws {
    schema = try Schema(yaml: "entities: {Item: {keys: {size: {type: integer}}}}")
    names = try (0..<count).map { try ref("Item/\($0.isMultiple(of: 3) ? "a-name-that-is-longer-\($0)" : "\($0)")") }
  }

  func record(_ name: Reference, _ revision: Revision, _ lease: Lease? = nil) -> ObjectRecord {
    ObjectRecord(
      name, entity: schema.entities[0], revision: revision, createdAt: 0, values: [.integer(Int64(revision))],
      lease: lease)
  }

  /// Expects that a tree has these objects in these revisions, and no others.
  func expect(_ tree: RecordTree, _ oracle: [Reference: Revision]) throws {
    #expect(tree.checkInvariants() == [], "seed \(seed)")
    #expect(tree.count == oracle.count, "seed \(seed)")
    let pairs = tree.map { ($0.key, $0.value.revision) }
    #expect(Dictionary(pairs) { _, _ in .max } == oracle, "seed \(seed)")
    #expect(Set(tree.references) == Set(oracle.keys), "seed \(seed)")
    for name in names { #expect(tree[name]?.revision == oracle[name], "seed \(seed)") }
  }
}

private struct Weak {
  weak var lease: Lease?
}
