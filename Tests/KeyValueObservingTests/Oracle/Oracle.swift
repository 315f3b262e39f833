import KeyValueModel
import KeyValueObserving

/// An oracle that determines the expected notifications: it reads every observation before and after every operation,
/// and applies the rules of the specification, sections 7 and 14. It shares no code with the production modules.
struct Oracle {
  struct Watch {
    let number: Int
    let observer: UInt64
    let cell: String?
    let position: Int
    let object: String
    let path: [String]
    let options: ObservingOptions
  }

  struct Rank: Comparable {
    let setting: Int
    let depth: Int

    static func < (left: Rank, right: Rank) -> Bool { (left.setting, left.depth) < (right.setting, right.depth) }
  }

  struct Bracket {
    let link: Link
    var depth = 1
    let before: OracleWorld
    /// The watches that depended on the key when it was opened.
    let dependents: Set<Int>
    var priors: [Int] = []
  }

  typealias Link = OracleWorld.Link
  typealias MemberChange = OracleWorld.MemberChange

  struct Told {
    let watch: Watch
    let line: String
    var isRetracted = false
  }

  var world: OracleWorld
  var watches: [Watch] = []
  var brackets: [Bracket] = []
  var told: [Told] = []
  /// The last value that a watch saw before a bracket began to hold changes back from it, by the number of the watch.
  var seen: [Int: Value] = [:]
  /// The watches from which more than the silent setting of a key was held back.
  var owed: Set<Int> = []
  /// The former values of the keys that were set silently since, by the number of the watch.
  var silenced: [Int: [Link: Value]] = [:]
  /// The ways that brackets around other inputs of computed keys hold back from a watch, until it is notified.
  var held: [Int: Set<OracleWays.HeldWay>] = [:]

  init(schema: OracleSchema) {
    world = OracleWorld(schema: schema)
  }

  /// Applies a transaction. Returns the expected notifications of each observer, or nil if the transaction must fail
  /// and change nothing.
  mutating func commit(_ operations: [KeyValueModel.Operation]) -> [UInt64: [String]]? {
    let start = self
    (told, brackets, seen, held) = ([], [], [:], [:])
    (owed, silenced) = ([], [:])
    do {
      for operation in operations { try step(operation) }
      guard brackets.isEmpty else { throw OracleWorld.Refused() }
    } catch {
      self = start
      return nil
    }
    let ended = watches.filter { start.world.objects[$0.object] != nil && world.objects[$0.object] == nil }
    watches.removeAll { watch in ended.contains { $0.number == watch.number } }
    var lines: [UInt64: [String]] = [:]
    for entry in told where !entry.isRetracted && !ended.contains(where: { Self.isOneCell($0, entry.watch) }) {
      lines[entry.watch.observer, default: []].append(entry.line)
    }
    for watch in ended.sorted(by: { ($0.cell ?? "", $0.object) < ($1.cell ?? "", $1.object) }) {
      let line = (watch.cell.map { "[\($0)] " } ?? "") + "gone \(watch.object)"
      if lines[watch.observer]?.contains(line) != true { lines[watch.observer, default: []].append(line) }
    }
    return lines
  }

  private static func isOneCell(_ left: Watch, _ right: Watch) -> Bool {
    left.observer == right.observer && left.cell == right.cell && left.object == right.object
  }

  private mutating func step(_ operation: KeyValueModel.Operation) throws {
    let before = world
    try world.apply(operation)
    switch operation {
    case .willChange(let object, let key): open(Link(object: object.text, key: key))
    case .didChange(let object, let key): try close(Link(object: object.text, key: key))
    default:
      let ways = OracleWays(before: before, after: world, open: brackets.map(\.link))
      for watch in watches where !brackets.isEmpty { withhold(watch, before, ways) }
      let present = self
      notify(olds: before, change: { present.seen[$0.number] == nil ? ways.memberChange($0) : nil }) { watch in
        before.links(watch.object, watch.path).compactMap { ways.rank($0, owes: present.owes(watch)) }.min()
      }
    }
  }

  /// Records the changes that an operation inside brackets holds back from a watch.
  private mutating func withhold(_ watch: Watch, _ before: OracleWorld, _ ways: OracleWays) {
    let (number, links) = (watch.number, before.links(watch.object, watch.path))
    let heldWays = links.flatMap { ways.heldWays(to: $0) }
    let isOwed = !heldWays.isEmpty || links.contains(where: ways.holdsBack)
    let silent = ways.silentSettings(behind: links).filter { before.objects[$0.object] != nil }
    if isOwed || (!silent.isEmpty && links.contains(where: ways.dependsOnBracket)) {
      seen[number] = seen[number] ?? before.read(watch.object, path: watch.path)
    }
    if isOwed { owed.insert(number) }
    if !heldWays.isEmpty { held[number, default: []].formUnion(heldWays) }
    for link in silent where seen[number] != nil && silenced[number]?[link] == nil {
      silenced[number, default: [:]][link] = before.objects[link.object]?[link.key] ?? .null
    }
  }

  private func value(_ watch: Watch) -> Value { world.read(watch.object, path: watch.path) }

  /// Returns true if the last value that a watch saw differs from the present one, even without the silent settings.
  private func owes(_ watch: Watch) -> Bool {
    guard owed.contains(watch.number), let seen = seen[watch.number], seen != value(watch) else { return false }
    return world.with(silenced[watch.number] ?? [:]).read(watch.object, path: watch.path) != seen
  }

  // MARK: Brackets

  private mutating func open(_ link: Link) {
    if let index = brackets.firstIndex(where: { $0.link == link }) {
      brackets[index].depth += 1
      return
    }
    let ways = OracleWays(bracket: link, before: nil, after: world, open: brackets.map(\.link))
    let dependents = watches.filter { watch in
      world.links(watch.object, watch.path).contains { ways.depends($0, on: link) }
    }
    var bracket = Bracket(link: link, before: world, dependents: Set(dependents.map(\.number)))
    let ranked = ranks { watch in
      world.links(watch.object, watch.path).compactMap { ways.bracketRank($0, owes: false) }.min()
    }
    for watch in ranked where watch.options.contains(.prior) {
      bracket.priors.append(told.count)
      tell(watch, old: seen[watch.number] ?? value(watch), isPrior: true)
    }
    brackets.append(bracket)
  }

  private mutating func close(_ link: Link) throws {
    guard let index = brackets.firstIndex(where: { $0.link == link }) else {
      throw OracleWorld.Refused()
    }
    brackets[index].depth -= 1
    guard brackets[index].depth == 0 else { return }
    let bracket = brackets.remove(at: index)
    let isSame = bracket.before.read(link.object, link.key) == world.read(link.object, link.key)
    let isCalm = isSame && world.key(link.object, link.key)?.notifies == "changed"
    let ways = OracleWays(bracket: link, before: bracket.before, after: world, open: brackets.map(\.link))
    let present = self
    let announced = Set(bracket.priors.map { told[$0].watch.number })
    let heard = notify(olds: world, announced: announced) { watch in
      let owes = present.owes(watch)
      let held = (present.held[watch.number] ?? []).filter { $0.bracket == link && ways.isPassable($0, owes: owes) }
        .map { Rank(setting: 0, depth: $0.gates.count) }.min()
      if isCalm, !owes { return held }
      // A watch that came to depend on the key inside the bracket was notified by the change that did that.
      guard bracket.dependents.contains(watch.number) || present.owed.contains(watch.number) else { return held }
      let rank = present.world.links(watch.object, watch.path)
        .compactMap { ways.bracketRank($0, owes: owes) }.min()
      return rank ?? held
    }
    for (number, ways) in held { held[number] = ways.filter { $0.bracket != link } }
    for prior in bracket.priors where !heard.contains(told[prior].watch.number) { told[prior].isRetracted = true }
  }

  // MARK: Telling

  private func ranks(_ rank: (Watch) -> Rank?) -> [Watch] {
    let ranked = watches.compactMap { watch in rank(watch).map { (watch, $0) } }
    return ranked.sorted { left, right in
      if left.1 != right.1 { return left.1 < right.1 }
      let (leftCell, rightCell) = (left.0.cell ?? "", right.0.cell ?? "")
      return (leftCell, left.0.position, left.0.number) < (rightCell, right.0.position, right.0.number)
    }.map(\.0)
  }

  @discardableResult
  private mutating func notify(
    olds: OracleWorld, announced: Set<Int> = [], change: (Watch) -> MemberChange? = { _ in nil },
    _ rank: (Watch) -> Rank?
  ) -> Set<Int> {
    let ranked = ranks(rank)
    let old = Dictionary(
      uniqueKeysWithValues: ranked.map { ($0.number, seen[$0.number] ?? olds.read($0.object, path: $0.path)) })
    for watch in ranked where watch.options.contains(.prior) && !announced.contains(watch.number) {
      tell(watch, old: old[watch.number], isPrior: true, change(watch))
    }
    for watch in ranked.reversed() {
      tell(watch, old: old[watch.number], isPrior: false, change(watch))
      (seen[watch.number], held[watch.number], silenced[watch.number]) = (nil, nil, nil)
      owed.remove(watch.number)
    }
    return Set(ranked.map(\.number))
  }

  private mutating func tell(_ watch: Watch, old: Value?, isPrior: Bool, _ change: MemberChange? = nil) {
    var line = (watch.cell.map { "[\($0)] " } ?? "") + "\(watch.object).\(watch.path.joined(separator: "."))"
    if let change { line += " \(change.kind)" }
    if let indexes = change?.indexes { line += " at \(indexes.map(String.init).joined(separator: ","))" }
    if isPrior { line += " prior" }
    let hasOld = isPrior || change?.kind != "insertion"
    let hasNew = !isPrior && change?.kind != "removal"
    if watch.options.contains(.old), hasOld, let old = change.map({ .array($0.old) }) ?? old {
      line += " old=\(old.json)"
    }
    if watch.options.contains(.new), hasNew { line += " new=\((change.map { .array($0.new) } ?? value(watch)).json)" }
    told.append(Told(watch: watch, line: line + " context=\(watch.number)"))
  }
}
