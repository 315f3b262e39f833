import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Random traffic against the oracle")
struct OracleTests {
  /// A model, its observers and the oracle, side by side.
  struct Race {
    let schema: OracleSchema
    let hasManualKeys: Bool
    var oracle: Oracle
    var traffic: RandomTraffic
    var model: Model
    var index = ObserverIndex()
    var commits: [Commit] = []
    /// The state at each revision.
    var states: [ModelState] = []
    var trail: [String] = []
    var lastSeen: [String: Value] = [:]
    var nextWatch = 0
    /// The generator of the budgets. It is apart from that of the traffic, which the seed alone determines.
    var budgets: SplitMix64
    /// An index that was copied at some revision, and its events since then, commit by commit.
    var fork: (start: ObserverIndex, live: ObserverIndex, revision: Int, lines: [String])?

    init(seed: UInt64, modes: [String]) throws {
      var random = SplitMix64(seed: seed)
      schema = OracleSchema.random(modes: modes, &random)
      hasManualKeys = modes.contains("manual")
      budgets = SplitMix64(seed: ~seed)
      oracle = Oracle(schema: schema)
      traffic = RandomTraffic(schema: schema, random: random)
      model = Model(schema: try Schema(yaml: schema.yaml))
      states = [model.state]
    }
  }

  @Test(
    "Every event is what the rules say, whatever happens",
    arguments: [["always"], ["always", "changed"], ["always", "changed", "manual"]])
  func race(modes: [String]) throws {
    for round in 0..<10 {
      let raceSeed = seed &+ UInt64(round) &* 1_000_003 &+ UInt64(modes.count) << 32
      var race = try Race(seed: raceSeed, modes: modes)
      do {
        for _ in 0..<80 { try race.step() }
        try race.finish()
      } catch let difference as Difference {
        Issue.record(
          """
          KEYWAY_TEST_SEED=\(seed), round \(round): \(difference.text)
          \(race.schema.yaml)
          \(race.trail.joined(separator: "\n"))
          """)
        return
      }
    }
  }
}

struct Difference: Error { let text: String }

func agree(_ condition: Bool, _ text: @autoclosure () -> String) throws {
  if !condition { throw Difference(text: text()) }
}

extension OracleTests.Race {
  mutating func step() throws {
    if Int.random(in: 0..<3, using: &traffic.random) == 0 {
      try rebind()
      try checkInvariants()
    }
    if fork == nil, Int.random(in: 0..<15, using: &traffic.random) == 0 { fork = (index, index, commits.count, []) }
    let operations = traffic.transaction(oracle.world)
    trail.append("\(operations)".replacing("KeyValueModel.", with: ""))
    let before = oracle.world
    let expected = oracle.commit(operations)
    let commit: Commit
    do throws(ModelError) {
      commit = try model.commit(Transaction(operations))
    } catch {
      try agree(expected == nil, "failed with \(error)")
      try agree(oracle.world.objects == before.objects, "the oracle forgot to undo")
      return try compareState()
    }
    commits.append(commit)
    states.append(model.state)
    try agree(expected != nil, "did not fail")
    try compareState()
    try compare(commit, expected ?? [:])
    try checkInvariants()
  }

  private mutating func compare(_ commit: Commit, _ expected: [UInt64: [String]]) throws {
    var events: [UInt64: ObserverEvent] = [:]
    var budgeted = index
    index.notify(CollectionOfOne(commit), of: model.state) { events[$0.observer.rawValue] = $0 }
    try compare(commit, events, toldWithinBudgetBy: &budgeted)
    for observer in Set(events.keys).union(expected.keys) {
      let found = events[observer].map(lines) ?? []
      try agree(
        found == expected[observer] ?? [], "observer \(observer)\nfound \(found)\nexpected \(expected[observer] ?? [])")
      try events[observer].map { try follow($0) }
    }
    if var live = fork?.live {
      var lines: [String] = []
      live.notify(CollectionOfOne(commit), of: model.state) { lines.append(Self.text($0)) }
      fork?.live = live
      fork?.lines += lines.sorted()
    }
  }

  /// Checks that with a budget an observer receives the same event, or only its lost objects, and that the index stays
  /// consistent.
  private mutating func compare(
    _ commit: Commit, _ events: [UInt64: ObserverEvent], toldWithinBudgetBy index: inout ObserverIndex
  ) throws {
    let budget = Int.random(in: 0..<12, using: &budgets)
    let steps = Int.random(in: 0..<3, using: &budgets) == 0 ? Int.random(in: 1..<400, using: &budgets) : .max
    var budgeted: [UInt64: ObserverEvent] = [:]
    index.notify(
      CollectionOfOne(commit), of: model.state, changesPerObserver: budget, budget: ObservationBudget(steps: steps)
    ) {
      budgeted[$0.observer.rawValue] = $0
    }
    for observer in Set(events.keys).union(budgeted.keys) {
      let (free, bound) = (events[observer], budgeted[observer])
      if bound?.hasOverflowed == true {
        try agree(bound?.changes.isEmpty == true, "an overflowed event has changes")
        try agree(bound?.gone ?? [] == free?.gone ?? [], "budget \(budget): gone differs")
      } else {
        try agree(bound.map(lines) == free.map(lines), "budget \(budget): something else is told")
        let isOnlyGone = free?.changes.isEmpty ?? true
        try agree(isOnlyGone || free?.changes.count ?? 0 <= budget, "budget \(budget) was exceeded")
      }
    }
    let broken = index.brokenInvariants(in: model.state)
    try agree(broken.isEmpty && index.count == self.index.count, "budget \(budget): \(broken)")
  }

  static func text(_ event: ObserverEvent) -> String {
    "\(event.revision) \(event.observer.rawValue) \(lines(event))"
  }

  /// Checks, for observers with old and new values, that each old value is the new one before it, and that folding the
  /// changes gives the value.
  private mutating func follow(_ event: ObserverEvent) throws {
    guard !hasManualKeys else { return }
    for change in event.changes where change.observation.options.isSuperset(of: [.old, .new]) {
      let context = change.observation.context ?? ""
      let seen = lastSeen[context] ?? .null
      if change.kind == .setting {
        try agree(change.old == seen, "\(line(change)) follows \(seen.json)")
        if let new = change.new { lastSeen[context] = new }
      } else {
        lastSeen[context] = .array(try Folding.apply(change, to: seen))
      }
    }
  }

  private func compareState() throws {
    try agree(model.revision == UInt64(commits.count), "a revision was lost")
    try agree(model.state.count == oracle.world.objects.count, "the objects differ")
    for (name, values) in oracle.world.objects {
      guard let reference = Reference(name), let record = model.state.record(reference) else {
        throw Difference(text: "\(name) is not there")
      }
      for (index, key) in record.entity.keys.enumerated() {
        guard let storage = key.storage else {
          let value = model.state.value(of: record, reference, key: index)
          let expected = oracle.world.read(name, key.name)
          try agree(value == expected, "\(name).\(key.name) reads \(value.json), not \(expected.json)")
          continue
        }
        let value = record.values[storage]
        try agree(value == values[key.name] ?? .null, "\(name).\(key.name) differs: \(value.json)")
        if case .members(let list) = value {
          let isOrdered = oracle.world.key(name, key.name)?.isOrdered
          try agree(list.isOrdered == isOrdered, "\(name).\(key.name) has another order")
        }
      }
    }
    let broken = StateInvariants.broken(in: model.state, oracle.world)
    try agree(broken.isEmpty, "\(broken)")
  }

  private func checkInvariants() throws {
    let broken = index.brokenInvariants(in: model.state)
    try agree(broken.isEmpty, "\(broken)")
    try agree(index.count == oracle.watches.count, "\(index.count) observations, not \(oracle.watches.count)")
    guard !hasManualKeys else { return }
    for entry in index.tracked.values {
      let observation = entry.observation
      guard let context = observation.context, let seen = lastSeen[context] else { continue }
      let value = observation.value(in: model.state)
      try agree(
        value == seen, "\(observation.keyPath.text) of \(observation.object) reads \(value.json), told \(seen.json)")
    }
  }

  // MARK: Observers

  private mutating func rebind() throws {
    let observer = UInt64.random(in: 1...3, using: &traffic.random)
    let cell = ["a", "b", nil].randomElement(using: &traffic.random) ?? nil
    switch Int.random(in: 0..<20, using: &traffic.random) {
    case 0:
      index.remove(ObserverID(observer))
      oracle.watches.removeAll { $0.observer == observer }
    case 1:
      index.remove(ObserverID(observer), cell: cell)
      oracle.watches.removeAll { $0.observer == observer && $0.cell == cell }
    default:
      guard let object = oracle.world.objects.keys.sorted().randomElement(using: &traffic.random) else { return }
      try bind(object, observer, cell)
    }
  }

  private mutating func bind(_ object: String, _ observer: UInt64, _ cell: String?) throws {
    var observations: [Observation] = []
    for position in 0..<Int.random(in: 1...4, using: &traffic.random) {
      let path = schema.randomPath(OracleWorld.entity(object), upTo: 4, &traffic.random)
      let rawOptions = UInt8.random(in: 0..<16, using: &traffic.random)
      let options = ObservingOptions(rawValue: Bool.random(using: &traffic.random) ? rawOptions | 3 : rawOptions)
      let reference = try #require(Reference(object))
      let entity = try model.state.requireRecord(reference).entity
      let keyPath = try model.schema.resolveObservable(path.joined(separator: "."), from: entity)
      let observation = Observation(object: reference, keyPath: keyPath, options: options, context: "\(nextWatch)")
      observations.append(observation)
      oracle.watches.append(
        .init(
          number: nextWatch, observer: observer, cell: cell, position: position, object: object, path: path,
          options: options))
      if options.isSuperset(of: [.old, .new]) { lastSeen["\(nextWatch)"] = observation.value(in: model.state) }
      nextWatch += 1
    }
    trail.append("observer \(observer) \(cell ?? "-") \(object) \(observations.map(\.keyPath.text))")
    index.add(observations, of: ObserverID(observer), cell: cell, in: model.state)
  }
}
