import KeyValueModel
import Testing

@testable import KeyValueObserving

@Suite("The steps of a commit's observations")
struct ObservationBudgetTests {
  private static let schema = """
    entities:
      Team:
        keys:
          name: {type: string}
          members: {toMany: Member}
          size: {type: integer, computed: "members.@count"}
      Member: {keys: {name: {type: string}}}
    """
  private static let members = 100

  private var fixture: Fixture

  init() throws {
    fixture = try Fixture(Self.schema)
    _ = try fixture.apply((0..<Self.members).map { "create Member/\($0) {\"name\":\"n\($0)\"}" })
    let all = "[" + (0..<Self.members).map { "\"Member/\($0)\"" }.joined(separator: ",") + "]"
    _ = try fixture.apply((0..<20).map { "create Team/\($0) {\"name\":\"t\",\"members\":\(all)}" })
  }

  /// Renames a member. Returns the events by observer, the number of evaluations, and the steps that were spent.
  private mutating func rename(
    _ member: Int, to name: String, budget: ObservationBudget = ObservationBudget()
  ) throws -> (events: [UInt64: ObserverEvent], evaluations: Int, steps: Int) {
    let commit = try fixture.model.commit(Transaction([try operation("set Member/\(member) name \"\(name)\"")]))
    let state = PastState(before: [commit], of: fixture.model.state)
    var notifier = CommitNotifier(
      taking: &fixture.index, state: state, changesPerObserver: .max, bytesPerObserver: .max, budget: budget)
    var events: [UInt64: ObserverEvent] = [:]
    for event in notifier.events(of: commit) { events[event.observer.rawValue] = event }
    let (evaluations, steps) = (notifier.values.evaluationCount, notifier.values.budget.spentSteps)
    notifier.returnIndex(to: &fixture.index)
    return (events, evaluations, steps)
  }

  @Test("1,000 observations of one object and key path are evaluated once before and once after a commit")
  mutating func shared() throws {
    let observation = try fixture.observation("Team/0", "members.@distinctUnionOfObjects.name")
    for cell in 0..<1_000 {
      fixture.index.add([observation], of: ObserverID(1), cell: "c\(cell)", in: fixture.model.state)
    }
    let (events, evaluations, _) = try rename(3, to: "x")
    #expect(evaluations == 2)
    #expect(events[1]?.changes.count == 1_000)
    let values = Set((events[1]?.changes ?? []).map { [$0.old, $0.new] })
    #expect(values.count == 1 && values.first?[0] != values.first?[1])
  }

  @Test("The commits of a batch share the budget, also those that only set attributes")
  mutating func batch() throws {
    for observer in 1...3 as ClosedRange<UInt64> {
      let observation = try fixture.observation("Member/0", "name")
      fixture.index.add([observation], of: ObserverID(observer), in: fixture.model.state)
    }
    let commits = try (0..<8).map { number in
      try fixture.model.commit(Transaction([try operation("set Member/0 name \"x\(number)\"")]))
    }
    // Enough for all notices of one commit, and for those of five commits together.
    let budget = ObservationBudget(steps: 3 * ObservationBudget.stepsPerNotice)
    var events: [UInt64: [ObserverEvent]] = [:]
    fixture.index.notify(commits, of: fixture.model.state, budget: budget) { event in
      events[event.observer.rawValue, default: []].append(event)
    }
    var beyond = 0
    for observer in 1...3 as ClosedRange<UInt64> {
      let told = events[observer, default: []]
      #expect(told.prefix(5).map(\.revision) == commits.prefix(5).map(\.revision))
      #expect(told.last?.hasOverflowed == true)
      beyond += told.dropFirst(5).count { !$0.hasOverflowed }
    }
    // A reserve of a quarter is left for clients that used little.
    #expect(beyond <= 2)
  }

  @Test("A client that observes little is notified although another has used up the budget, and no more is spent")
  mutating func fairness() throws {
    // The greedy client's observations are of 20 lists; both orders of registration are tried.
    for first in [1, 2] as [UInt64] {
      for observer in [first, 3 - first] {
        let targets = observer == 1 ? (0..<20).map { "Team/\($0)" } : ["Team/0"]
        let path = observer == 1 ? "members.@distinctUnionOfObjects.name" : "members.@max.name"
        for target in targets {
          fixture.index.add([try fixture.observation(target, path)], of: ObserverID(observer), in: fixture.model.state)
        }
        fixture.index.charge(ObserverID(observer), to: QueryPayer(0, observer))
      }
      let budget = ObservationBudget(steps: 1_000)
      let (events, _, steps) = try rename(5, to: "y\(first)", budget: budget)
      #expect(events[1]?.isTooLong == true && events[1]?.hasOverflowed == true && events[1]?.changes.isEmpty == true)
      #expect(events[2]?.changes.count == 1 && events[2]?.hasOverflowed == false)
      #expect(steps <= 1_250, "the last evaluation ends with what is left")
      // With enough for all, all are notified.
      let (all, _, _) = try rename(5, to: "z\(first)", budget: ObservationBudget(steps: 1_000_000))
      #expect(all[1]?.changes.count == 20 && all[2]?.changes.count == 1)
      for observer in [1, 2] as [UInt64] {
        fixture.index.remove(ObserverID(observer))
        fixture.index.discharge(ObserverID(observer), of: QueryPayer(0, observer))
      }
    }
    #expect(fixture.index.payers.isEmpty)
  }

  @Test("An observer that misses a commit and loses all its objects by it is only told that they are gone")
  mutating func gone() throws {
    try fixture.observe("Team/0.members.@distinctUnionOfObjects.name")
    let commit = try fixture.model.commit(
      Transaction([try operation("set Member/1 name \"q\""), try operation("delete Team/0")]))
    var events: [ObserverEvent] = []
    fixture.index.notify(
      CollectionOfOne(commit), of: fixture.model.state, budget: ObservationBudget(steps: 1_000)
    ) { events.append($0) }
    var bound: [ObserverEvent] = []
    try fixture.observe("Team/1.members.@distinctUnionOfObjects.name", observer: 2)
    let second = try fixture.model.commit(
      Transaction([try operation("set Member/1 name \"r\""), try operation("delete Team/1")]))
    fixture.index.notify(
      CollectionOfOne(second), of: fixture.model.state, budget: ObservationBudget(steps: 10)
    ) { bound.append($0) }
    #expect(events.map(lines) == [["gone Team/0"]] && bound.map(lines) == [["gone Team/1"]])
    #expect(bound.map(\.hasOverflowed) == [false])
  }

  @Test("An observer over budget in one of several commits misses the rest, is notified once, and then gets the next")
  mutating func missingRest() throws {
    try fixture.observe("Team/0.members.@distinctUnionOfObjects.name")
    try fixture.observe("Team/0.name", "Team/1.name", observer: 2)
    for observer in [1, 2] as [UInt64] { fixture.index.charge(ObserverID(observer), to: QueryPayer(0, observer)) }
    var commits: [Commit] = []
    for operations in [
      [#"set Member/1 name "a""#], [#"set Member/1 name "b""#, #"set Team/0 name "c""#], [#"delete Team/1"#],
      [#"delete Team/0"#],
    ] {
      commits.append(try fixture.model.commit(Transaction(try operations.map(operation))))
    }
    var told: [[String]] = []
    let budget = fixture.index.notify(
      commits, of: fixture.model.state, budget: ObservationBudget(steps: 150)
    ) { told.append(["\($0.observer.rawValue) \($0.revision - commits[0].revision) \($0.hasOverflowed)"] + lines($0)) }
    #expect(
      Set(told) == [
        ["1 0 true"], ["2 1 false", #"Team/0.name old="t" new="c""#], ["2 2 false", "gone Team/1"],
        ["1 3 false", "gone Team/0"], ["2 3 false", "gone Team/0"],
      ], "\(told)")
    #expect(told.count == 5)
    #expect(budget.stepsOfCommits.count == 4 && budget.stepsOfCommits[0] > 100 && budget.stepsOfCommits[1] < 50)
    #expect(fixture.index.count == 0 && fixture.index.brokenInvariants(in: fixture.model.state).isEmpty)
    try fixture.observe("Team/2.members.@distinctUnionOfObjects.name", observer: 3)
    for (budget, isMissed) in [(150, true), (10_000, false)] {
      let commit = try fixture.model.commit(Transaction([try operation("set Member/2 name \"m\(budget)\"")]))
      let second = try fixture.model.commit(Transaction([try operation("set Team/3 name \"m\(budget)\"")]))
      var events: [ObserverEvent] = []
      fixture.index.notify(
        [commit, second], of: fixture.model.state, budget: ObservationBudget(steps: budget)
      ) { events.append($0) }
      #expect(events.map(\.hasOverflowed) == [isMissed])
      #expect(fixture.index.brokenInvariants(in: fixture.model.state).isEmpty)
    }
  }

  @Test("An observer that misses commits loses the observation of an object that its viewer may no longer read")
  func unreadable() throws {
    var fixture = try Fixture(
      """
      entities:
        Team:
          access: {read: "isOpen"}
          keys: {isOpen: {type: boolean}, members: {toMany: Member}, lead: {toOne: Member}}
        Member: {access: {read: "true"}, keys: {name: {type: string}}}
      """, #"create Member/1 {"name":"a"}"#, #"create Member/2 {"name":"b"}"#,
      #"create Team/1 {"isOpen":true,"members":["Member/1","Member/2"],"lead":"Member/1"}"#)
    let plain = try ["members.@unionOfObjects.name", "lead.name"].map { try fixture.observation("Team/1", $0) }
    let viewer = Viewer(claims: ["sub": .string("u")], in: fixture.model.schema)
    fixture.index.add(
      plain.map {
        Observation(object: $0.object, keyPath: $0.keyPath, options: $0.options, context: nil, viewer: viewer)
      },
      of: ObserverID(1), in: fixture.model.state)
    let commits = try ["set Member/1 name \"c\"", "set Team/1 isOpen false", "set Member/2 name \"d\""].map {
      try fixture.model.commit(Transaction([try operation($0)]))
    }
    var events: [ObserverEvent] = []
    fixture.index.notify(commits, of: fixture.model.state, budget: ObservationBudget(steps: 4)) { events.append($0) }
    #expect(events.map(\.hasOverflowed) == [true, false])
    #expect(events.last.map(lines) == ["gone Team/1"])
    #expect(fixture.index.count == 0 && fixture.index.brokenInvariants(in: fixture.model.state).isEmpty)
  }

  @Test("A plain commit that one observation hears of has the same budget")
  mutating func plain() throws {
    try fixture.observe("Team/0.members.@distinctUnionOfObjects.name")
    for (steps, isMissed) in [(50, true), (10_000, false)] {
      let commit = try fixture.model.commit(Transaction([try operation("set Member/2 name \"p\(steps)\"")]))
      var events: [ObserverEvent] = []
      fixture.index.notify(
        CollectionOfOne(commit), of: fixture.model.state, budget: ObservationBudget(steps: steps)
      ) { events.append($0) }
      #expect(events.map(\.hasOverflowed) == [isMissed] && events.map(\.isTooLong) == [isMissed])
      #expect(events.map(\.changes.count) == [isMissed ? 0 : 1])
    }
  }
}

@Suite("Observed values of a snapshot")
struct ObservedValuesTests {
  private var fixture: Fixture

  init() throws {
    fixture = try Fixture(
      "entities: {Team: {keys: {members: {toMany: Member}}}, Member: {keys: {name: {type: string}}}}",
      "create Member/1 {\"name\":\"a\"}", "create Member/2 {\"name\":\"b\"}", "create Member/3 {\"name\":\"c\"}",
      "create Team/1 {\"members\":[\"Member/1\",\"Member/2\"]}")
  }

  private func observations(_ count: Int) throws -> [Observation] {
    try (0..<count).map { try fixture.observation("Team/1", "members.@unionOfObjects.name", context: "\($0)") }
  }

  @Test("Each object and key path is evaluated once, within the limit")
  func once() throws {
    var values = ObservedValues(steps: 100)
    try values.evaluate(try observations(1_000), in: fixture.model.state, at: 1)
    #expect(values.evaluationCount == 1)
    var few = ObservedValues(steps: 2)
    #expect(throws: ModelError.self) {
      try few.evaluate(try observations(1), in: fixture.model.state, at: 1)
    }
  }

  @Test("Values hold after commits that touched nothing that they were read from, and only then")
  mutating func bringUp() throws {
    var values = ObservedValues(steps: 100)
    let start = fixture.commits.count
    try values.evaluate(try observations(1), in: fixture.model.state, at: Revision(start))
    _ = try fixture.apply(["set Member/3 name \"x\""])
    let isUntouched = values.bringUp(through: Array(fixture.commits[start...]), to: Revision(start + 1))
    #expect(isUntouched)
    let change = try observations(1)[0].initialChange(cell: nil, in: values.reader(of: fixture.model.state))
    #expect(change.new?.json == #"["a","b"]"#)
    _ = try fixture.apply(["set Member/2 name \"y\""])
    let isStillUntouched = values.bringUp(through: Array(fixture.commits[(start + 1)...]), to: Revision(start + 2))
    #expect(!isStillUntouched)
    let isKnown = values.bringUp(through: nil, to: Revision(start + 2))
    #expect(!isKnown, "commits that are not known any more")
  }
}
