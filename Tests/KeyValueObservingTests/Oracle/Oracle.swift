import KeyValueModel
import KeyValueObserving

/// Who must be told of what: decided by looking at every observation before and after every operation, and by the rules
/// of the wire contract, sections 7 and 10. Shares no code with the production modules.
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

  private struct Bracket {
    let object: String
    let key: String
    var depth = 1
    let before: OracleWorld
    var priors: [Int] = []
  }

  private struct Told {
    let watch: Watch
    let line: String
    var isRetracted = false
  }

  var world: OracleWorld
  var watches: [Watch] = []
  private var brackets: [Bracket] = []
  private var told: [Told] = []
  /// What an observer saw last before a bracket began to hold something back from it.
  private var seen: [Int: Value] = [:]

  init(schema: OracleSchema) {
    world = OracleWorld(schema: schema)
  }

  /// What each observer is told, nil where the transaction must fail; then nothing has happened.
  mutating func commit(_ operations: [KeyValueModel.Operation]) -> [UInt64: [String]]? {
    let start = self
    (told, brackets, seen) = ([], [], [:])
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
    case .willChange(let object, let key): open(object.text, key)
    case .didChange(let object, let key): try close(object.text, key)
    default:
      let settings = world.settings
      for watch in watches where seen[watch.number] == nil {
        let isHeldBack = before.links(watch.object, watch.path).contains { holdsBack($0, settings, before) }
        if isHeldBack { seen[watch.number] = before.read(watch.object, path: watch.path) }
      }
      let present = self
      notify(olds: before) { watch in
        before.links(watch.object, watch.path)
          .compactMap { present.rank($0, settings, before, owes: present.owes(watch)) }.min()
      }
    }
  }

  private func value(_ watch: Watch) -> Value { world.read(watch.object, path: watch.path) }

  private func owes(_ watch: Watch) -> Bool { seen[watch.number].map { $0 != value(watch) } ?? false }

  private func isOpen(_ link: (object: String, key: String)) -> Bool {
    brackets.contains { $0.object == link.object && $0.key == link.key }
  }

  // MARK: Operations

  /// How near the first setting is that makes a key notify, nil where none does.
  private func rank(
    _ link: (object: String, key: String), _ settings: [OracleWorld.Setting], _ before: OracleWorld, owes: Bool
  ) -> Rank? {
    guard let key = before.key(link.object, link.key), !isOpen(link) else { return nil }
    guard !key.isStored else {
      let index = settings.firstIndex { !$0.isSilent && $0.object == link.object && $0.key == link.key }
      return index.map { Rank(setting: $0, depth: 0) }
    }
    if key.notifies == "manual" { return nil }
    let isEqual = before.read(link.object, link.key) == world.read(link.object, link.key)
    if key.notifies == "changed", isEqual, !owes { return nil }
    return inputs(link, before).compactMap { rank($0, settings, before, owes: owes) }.min()
      .map { Rank(setting: $0.setting, depth: $0.depth + 1) }
  }

  private func inputs(_ link: (object: String, key: String), _ world: OracleWorld) -> [(object: String, key: String)] {
    world.schema.paths(OracleWorld.entity(link.object), link.key).flatMap { world.links(link.object, $0) }
  }

  private func touches(
    _ link: (object: String, key: String), _ settings: [OracleWorld.Setting], _ before: OracleWorld
  ) -> Bool {
    if settings.contains(where: { $0.object == link.object && $0.key == link.key }) { return true }
    return inputs(link, before).contains { touches($0, settings, before) }
  }

  private func holdsBack(
    _ link: (object: String, key: String), _ settings: [OracleWorld.Setting], _ before: OracleWorld
  ) -> Bool {
    if isOpen(link), touches(link, settings, before) { return true }
    return inputs(link, before).contains { holdsBack($0, settings, before) }
  }

  // MARK: Brackets

  private func bracketRank(
    _ link: (object: String, key: String), _ bracket: (object: String, key: String), since before: OracleWorld?,
    owes: Bool
  ) -> Rank? {
    if link == bracket { return Rank(setting: 0, depth: 0) }
    guard let key = world.key(link.object, link.key), !key.isStored, !isOpen(link), key.notifies != "manual" else {
      return nil
    }
    let isEqual = before.map { $0.read(link.object, link.key) == world.read(link.object, link.key) } ?? false
    if key.notifies == "changed", isEqual, !owes { return nil }
    return inputs(link, world).compactMap { bracketRank($0, bracket, since: before, owes: owes) }.min()
      .map { Rank(setting: 0, depth: $0.depth + 1) }
  }

  private mutating func open(_ object: String, _ key: String) {
    if let index = brackets.firstIndex(where: { $0.object == object && $0.key == key }) {
      brackets[index].depth += 1
      return
    }
    var bracket = Bracket(object: object, key: key, before: world)
    let ranked = ranks { watch in
      world.links(watch.object, watch.path)
        .compactMap { bracketRank($0, (object, key), since: nil, owes: false) }.min()
    }
    for watch in ranked where watch.options.contains(.prior) {
      bracket.priors.append(told.count)
      tell(watch, old: seen[watch.number] ?? value(watch), isPrior: true)
    }
    brackets.append(bracket)
  }

  private mutating func close(_ object: String, _ key: String) throws {
    guard let index = brackets.firstIndex(where: { $0.object == object && $0.key == key }) else {
      throw OracleWorld.Refused()
    }
    brackets[index].depth -= 1
    guard brackets[index].depth == 0 else { return }
    let bracket = brackets.remove(at: index)
    let isSame = bracket.before.read(object, key) == world.read(object, key)
    let isCalm = isSame && world.key(object, key)?.notifies == "changed"
    let present = self
    let heard = notify(olds: world, withPriors: false) { watch in
      let owes = present.owes(watch)
      if isCalm, !owes { return nil }
      return present.world.links(watch.object, watch.path)
        .compactMap { present.bracketRank($0, (object, key), since: bracket.before, owes: owes) }.min()
    }
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
  private mutating func notify(olds: OracleWorld, withPriors: Bool = true, _ rank: (Watch) -> Rank?) -> Set<Int> {
    let ranked = ranks(rank)
    let old = Dictionary(
      uniqueKeysWithValues: ranked.map { ($0.number, seen[$0.number] ?? olds.read($0.object, path: $0.path)) })
    if withPriors {
      for watch in ranked where watch.options.contains(.prior) { tell(watch, old: old[watch.number], isPrior: true) }
    }
    for watch in ranked.reversed() {
      tell(watch, old: old[watch.number], isPrior: false)
      seen[watch.number] = nil
    }
    return Set(ranked.map(\.number))
  }

  private mutating func tell(_ watch: Watch, old: Value?, isPrior: Bool) {
    var line = (watch.cell.map { "[\($0)] " } ?? "") + "\(watch.object).\(watch.path.joined(separator: "."))"
    if isPrior { line += " prior" }
    if watch.options.contains(.old), let old { line += " old=\(old.json)" }
    if watch.options.contains(.new), !isPrior { line += " new=\(value(watch).json)" }
    told.append(Told(watch: watch, line: line + " context=\(watch.number)"))
  }
}
