import KeyValueModel

/// The ways through computed keys by which an operation, or a bracket, reaches keys: followed one by one, and cached
/// for one operation.
final class OracleWays {
  typealias Link = OracleWorld.Link
  typealias Rank = Oracle.Rank

  private struct Question: Hashable {
    let link: Link
    let owes: Bool
  }

  private let bracket: Link?
  private let before: OracleWorld?
  private let after: OracleWorld
  /// The keys of the open brackets, the first opened first.
  private let open: [Link]
  private var ranks: [Question: Rank?] = [:]
  private var roots: [Link: Set<Link>] = [:]
  private var held: [Link: Bool] = [:]
  private var readKeys: [Link: Set<Link>] = [:]

  /// A way from a setting to a watch, through a computed key of which another input is inside a bracket.
  struct HeldWay: Hashable {
    let bracket: Link
    /// The computed keys, the outermost first.
    let gates: [Link]
  }

  init(bracket: Link? = nil, before: OracleWorld?, after: OracleWorld, open: [Link]) {
    self.bracket = bracket
    self.before = before
    self.after = after
    self.open = open
  }

  /// The world in which keys are followed: for an operation the one before it, for a bracket the one at its beginning
  /// or end.
  private var world: OracleWorld { bracket == nil ? before ?? after : after }

  private func inputs(_ link: Link) -> [Link] {
    world.schema.paths(OracleWorld.entity(link.object), link.key).flatMap { world.links(link.object, $0) }
  }

  // MARK: Operations

  /// Returns the rank of the first setting that makes a key notify, or nil if none does.
  func rank(_ link: Link, owes: Bool) -> Rank? {
    guard let key = world.key(link.object, link.key), !open.contains(link) else { return nil }
    guard !key.isStored else {
      let index = after.settings.firstIndex { !$0.isSilent && $0.object == link.object && $0.key == link.key }
      return index.map { Rank(setting: $0, depth: 0) }
    }
    return computedRank(link, key, owes) { self.rank($0, owes: owes) }
  }

  private func computedRank(
    _ link: Link, _ key: OracleSchema.Key, _ owes: Bool, _ inner: (Link) -> Rank?
  ) -> Rank? {
    if key.notifies == "manual" { return nil }
    // Changes of its other inputs are notified at the end of the bracket.
    if bracket == nil, holder(link) != nil { return nil }
    let question = Question(link: link, owes: owes)
    if let known = ranks[question] { return known }
    var rank = inputs(link).compactMap(inner).min().map { Rank(setting: $0.setting, depth: $0.depth + 1) }
    if rank != nil, key.notifies == "changed", !owes, isEqual(link) { rank = nil }
    ranks[question] = rank
    return rank
  }

  private func isEqual(_ link: Link) -> Bool {
    before.map { $0.read(link.object, link.key) == after.read(link.object, link.key) } ?? false
  }

  /// Returns the stored keys that a key is computed from.
  private func storedKeys(_ link: Link) -> Set<Link> {
    guard world.key(link.object, link.key)?.isStored == false else { return [link] }
    if let known = roots[link] { return known }
    let found = inputs(link).reduce(into: Set<Link>()) { $0.formUnion(storedKeys($1)) }
    roots[link] = found
    return found
  }

  private func touches(_ link: Link, _ setting: OracleWorld.Setting) -> Bool {
    storedKeys(link).contains(Link(object: setting.object, key: setting.key))
  }

  /// Returns true if an open bracket holds back the operation's change of a key.
  func holdsBack(_ link: Link) -> Bool {
    guard !open.isEmpty else { return false }
    if let known = held[link] { return known }
    let isOpen = open.contains(link) && after.settings.contains { touches(link, $0) }
    let isHeld = isOpen || inputs(link).contains(where: holdsBack)
    held[link] = isHeld
    return isHeld
  }

  // MARK: Brackets around other inputs

  /// Returns the first opened bracket around a key that a computed key reads.
  private func holder(_ link: Link) -> Link? {
    guard !open.isEmpty else { return nil }
    let read = allInputs(link)
    return open.first(where: read.contains)
  }

  private func allInputs(_ link: Link) -> Set<Link> {
    guard world.key(link.object, link.key)?.isStored == false else { return [] }
    if let known = readKeys[link] { return known }
    let own = inputs(link)
    let found = own.reduce(into: Set(own)) { $0.formUnion(allInputs($1)) }
    readKeys[link] = found
    return found
  }

  /// Returns true if a key is the other, or is computed from it.
  func depends(_ link: Link, on other: Link) -> Bool { link == other || allInputs(link).contains(other) }

  /// Returns true if a key is that of an open bracket, or is computed from it.
  func dependsOnBracket(_ link: Link) -> Bool { open.contains { depends(link, on: $0) } }

  /// Returns the keys that were set silently, outside of brackets around them, and that the keys in `links` are
  /// computed from.
  func silentSettings(behind links: [Link]) -> [Link] {
    let silent = after.settings.filter { setting in
      setting.isSilent && world.key(setting.object, setting.key)?.notifies == "manual"
    }
    return silent.filter { setting in links.contains { touches($0, setting) } }
      .map { Link(object: $0.object, key: $0.key) }.filter { !open.contains($0) }
  }

  /// Returns the ways by which settings would reach a key without a bracket around another key that is read on the way.
  func heldWays(to link: Link) -> [HeldWay] {
    waysFromSettings(to: link).compactMap { gates in
      let holders = gates.compactMap(holder)
      return open.first(where: holders.contains).map { HeldWay(bracket: $0, gates: gates) }
    }
  }

  private func waysFromSettings(to link: Link) -> Set<[Link]> {
    guard let key = world.key(link.object, link.key), !open.contains(link) else { return [] }
    guard !key.isStored else {
      return after.settings.contains { !$0.isSilent && $0.object == link.object && $0.key == link.key } ? [[]] : []
    }
    if key.notifies == "manual" { return [] }
    return inputs(link).reduce(into: []) { found, inner in
      for gates in waysFromSettings(to: inner) { found.insert([link] + gates) }
    }
  }

  /// Returns true if a change held back on a way is notified at the end of the bracket: no computed key on it may be
  /// manual or in an open bracket, and those that notify when changed must have changed.
  func isPassable(_ way: HeldWay, owes: Bool) -> Bool {
    way.gates.allSatisfy { gate in
      guard !open.contains(gate), let key = world.key(gate.object, gate.key) else { return false }
      return key.notifies != "manual" && (key.notifies != "changed" || owes || !isEqual(gate))
    }
  }

  /// Returns the change of the members for an observation that ends at a collection, if the operation set nothing else
  /// that the observation reads.
  func memberChange(_ watch: Oracle.Watch) -> OracleWorld.MemberChange? {
    guard after.settings.contains(where: { $0.change != nil }), let last = watch.path.last else { return nil }
    var owner = watch.object
    for name in watch.path.dropLast() {
      guard let next = world.target(owner, name) else { return nil }
      owner = next
    }
    let links = world.links(watch.object, watch.path)
    let touching = after.settings.filter { setting in links.contains { touches($0, setting) } }
    guard touching.count == 1, touching[0].object == owner, touching[0].key == last else { return nil }
    return touching[0].change
  }

  // MARK: Brackets

  /// Returns the rank of a key that depends on the bracket's key, or nil if it does not notify.
  func bracketRank(_ link: Link, owes: Bool) -> Rank? {
    if link == bracket { return Rank(setting: 0, depth: 0) }
    guard let key = world.key(link.object, link.key), !key.isStored, !open.contains(link) else { return nil }
    return computedRank(link, key, owes) { self.bracketRank($0, owes: owes) }
  }
}
