import KeyValueModel

@testable import KeyValueObserving

extension OracleTests.Race {
  /// Replays all commits since the fork, in other portions and to an index that begins in the past, and expects the
  /// same events. Then ends all observations.
  mutating func finish() throws {
    if let fork {
      let commits = commits[fork.revision...]
      try replay(fork.start, in: [commits], "at once")
      let middle = Int.random(in: fork.revision...self.commits.count, using: &traffic.random)
      try replay(fork.start, in: [commits[..<middle], commits[middle...]], "in two portions")
      try replay(fresh(fork.start, in: PastState(before: commits, of: model.state)), in: [commits], "afresh")
      try replayAlone(fork.start, fork.lines, commits)
    }
    for observer in 1...3 as ClosedRange<UInt64> { index.remove(ObserverID(observer)) }
    try agree(index.count == 0 && index.linkCount == 0, "observations are left over")
    let leftovers = StateInvariants.leftovers(in: index)
    try agree(leftovers.isEmpty, "left over: \(leftovers)")
  }

  private func replay(_ start: ObserverIndex, in portions: [ArraySlice<Commit>], _ manner: String) throws {
    guard let fork else { return }
    var index = start
    var lines: [[String]] = Array(repeating: [], count: commits.count + 1)
    for portion in portions {
      let present = states[portion.endIndex]
      index.notify(portion, of: present) { lines[Int($0.revision)].append(Self.text($0)) }
    }
    try agree(lines.flatMap { $0.sorted() } == fork.lines, "replaying \(manner) tells something else")
    try agree(index.count == fork.live.count, "replaying \(manner) ends other observations")
    let broken = index.brokenInvariants(in: model.state)
    try agree(broken.isEmpty, "replaying \(manner) leaves \(broken)")
  }

  /// Replays for each observer alone, without the commits that do not concern it.
  private func replayAlone(_ start: ObserverIndex, _ lines: [String], _ commits: ArraySlice<Commit>) throws {
    let past = PastState(before: commits, of: model.state)
    for observer in 1...3 as ClosedRange<UInt64> {
      let expected = lines.filter { $0.split(separator: " ")[1] == "\(observer)" }
      let alone = fresh(start, of: observer, in: past)
      let observations = alone.tracked.values.map(\.observation)
      let concerning = Observation.commits(commits, concerning: observations, in: model.state)
      for chosen in [Array(commits), concerning].compactMap(\.self) {
        var (index, found) = (alone, [String]())
        index.notify(chosen, of: model.state, from: PastState(before: chosen, of: model.state)) {
          found.append(Self.text($0))
        }
        try agree(found == expected, "replaying \(observer) alone\nfound \(found)\nexpected \(expected)")
      }
    }
  }

  /// Returns a new index of the same observations, or of those of one observer.
  private func fresh(_ index: ObserverIndex, of observer: UInt64? = nil, in past: PastState) -> ObserverIndex {
    var fresh = ObserverIndex()
    var group: [ObserverIndex.Tracked] = []
    func register() {
      guard let first = group.first else { return }
      fresh.add(group.map(\.observation), of: first.observer, cell: first.cell, in: past)
      group = []
    }
    for (_, entry) in index.tracked.entries.sorted(by: { $0.id < $1.id }) {
      if let observer, entry.observer.rawValue != observer { continue }
      if entry.position == 0 { register() }
      group.append(entry)
    }
    register()
    return fresh
  }
}
