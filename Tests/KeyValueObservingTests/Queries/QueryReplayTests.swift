import KeyValueModel
import TestKit
import Testing

@testable import KeyValueObserving

@Suite("Random traffic against queries that are fetched anew")
struct QueryReplayTests {
  @Test("every content turns the list before into the list after, and says no more than that", arguments: 0..<8)
  func race(round: Int) throws {
    try inRace(round) { race in
      for _ in 0..<4 { try race.changeWatchers() }
      for _ in 0..<40 { try race.step() }
      try race.finish()
    }
  }

  @Test("many contents in one say what all of them did", arguments: 0..<6)
  func composition(round: Int) throws {
    try inRace(100 + round) { race in
      for _ in 0..<25 { _ = try race.commit() }
      for _ in 0..<12 { try compareMerged(&race) }
    }
  }

  @Test("a query in the place of another is told as one content", arguments: 0..<6)
  func transition(round: Int) throws {
    try inRace(200 + round) { race in
      for _ in 0..<25 { _ = try race.commit() }
      for _ in 0..<60 { try compareTransition(&race) }
    }
  }

  /// Runs with a seed of its own. A failure names the seed that repeats it.
  private func inRace(_ round: Int, _ body: (inout QueryRace) throws -> Void) throws {
    var race = try QueryRace(seed: seed &+ UInt64(round) &* 1_000_003)
    do {
      try body(&race)
    } catch let difference as Difference {
      Issue.record(
        """
        KEYWAY_TEST_SEED=\(seed), round \(round): \(difference.text)
        \(race.queries.schema.yaml)
        \(race.trail.joined(separator: "\n"))
        """)
    }
  }

  /// Compares one query's events over some commits, one by one, with its one event for all of them.
  private func compareMerged(_ race: inout QueryRace) throws {
    let query = try race.queries.query(&race.traffic.random)
    let then = race.model.revision
    var live = LiveQueries(filterCost: .max, recentLimit: .max)
    let watcher = QueryObserver(id: ObserverID(1), cell: nil)
    live.add(try LiveQuery(query, in: race.model.state, costLimit: .max), observer: watcher)
    guard let old = live.result(of: query) else { throw Difference(text: "no result") }
    var client = ClientList(old)
    for _ in 0..<Int.random(in: 1...8, using: &race.traffic.random) {
      let commit = try race.commit()
      var told: [QueryContent] = []
      live.notify(CollectionOfOne(commit), of: race.model.state) {
        if case .content(let content) = $0.outcome { told.append(content) }
      }
      for content in told { try client.apply(content, of: query) }
    }
    guard let new = live.result(of: query) else { throw Difference(text: "no result") }
    try agree(client.shows(try NaiveList(query, in: race.model.state)), "one by one gives another list: \(query.words)")
    try check(from: old, to: new, since: then, race)
  }

  /// Compares the transition from one query to another over the same entity some commits later.
  private func compareTransition(_ race: inout QueryRace) throws {
    let former = try race.queries.query(&race.traffic.random)
    let present = try race.queries.variation(of: former, &race.traffic.random)
    let then = race.model.revision
    let old = try LiveQuery(former, in: race.model.state, costLimit: .max).result
    if Int.random(in: 0..<3, using: &race.traffic.random) == 0 { _ = try race.commit() }
    let new = try LiveQuery(present, in: race.model.state, costLimit: .max).result
    try check(from: old, to: new, since: then, race)
  }

  private func check(
    from old: QueryResult, to new: QueryResult, since then: Revision, _ race: QueryRace
  ) throws {
    let (former, present) = (race.states[Int(then)], race.model.state)
    let content = QueryContent(from: old, at: then, to: new, in: present, at: race.model.revision)
    let before = try NaiveList(old.query, in: former)
    let after = try NaiveList(new.query, in: present)
    do {
      var client = ClientList(old)
      try client.apply(content, of: new.query)
      try agree(client.shows(after), "the list is another")
      try agree(content.revision == race.model.revision && content.writer == nil, "another head")
      if !content.isEmpty || !before.looksLike(after) {
        // An object that was deleted and created again in between counts as new.
        try ContentCheck(before: before, after: after, schema: race.schema).check(content, in: present) {
          present.record($0).map { $0.createdAt > then } ?? false
        }
      }
    } catch let difference as Difference {
      throw Difference(
        text: """
          from \(then) \(old.query.words)
          to \(race.model.revision) \(new.query.words)
          \(difference.text)
          told \(lines(content))
          from \(before.rows.map { "\($0.reference) \($0.section ?? "") \($0.sorts.map(\.json))" })
          to   \(after.rows.map { "\($0.reference) \($0.section ?? "") \($0.sorts.map(\.json))" })
          """)
    }
  }
}
