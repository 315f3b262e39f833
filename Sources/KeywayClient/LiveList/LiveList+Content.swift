import KeyValueModel

/// Applying a `content`: all sources go, sections go and come, all targets are placed, and what stayed is updated.
extension LiveList {
  /// Changes the list as one commit did. Where the content contradicts the list, the list stays as it was.
  package mutating func apply(_ content: LiveContent) throws(LiveListError) {
    let place = "content \(content.revision)"
    if let revision, content.revision < revision { throw .outdated(place, listRevision: revision) }
    try checkNames(content.changes, place)
    var parts = parts
    try removeSources(content.changes, from: &parts, place)
    try changeSections(content.sectionChanges, of: &parts, place)
    try placeTargets(content.changes, in: &parts, place)
    try update(content.changes, in: &parts, place)
    for (index, part) in parts.enumerated() where isSectioned && part.items.isEmpty {
      throw .sectionRows(place, index, name: part.name ?? .null, count: 0)
    }
    let count = parts.reduce(0) { $0 + $1.items.count }
    guard count == content.count else { throw .wrongCount(place, stated: content.count, found: count) }
    self.parts = parts
    revision = content.revision
    for change in content.changes where change.kind == .delete { references.remove(change.reference) }
    for change in content.changes where change.kind == .insert { references.insert(change.reference) }
  }

  /// Each object is named once, stands where it is said to stand, and is new where it is inserted.
  private func checkNames(_ changes: [LiveChange], _ place: String) throws(LiveListError) {
    var names: Set<Reference> = []
    for (number, change) in changes.enumerated() {
      let place = "\(place), changes[\(number)]"
      guard names.insert(change.reference).inserted else { throw .namedTwice(place, change.reference) }
      if let index = change.index {
        try Self.check(change.reference, at: index, in: parts, place)
      } else if references.contains(change.reference) {
        throw .alreadyListed(place, change.reference)
      }
    }
  }

  private static func check(
    _ reference: Reference, at index: LiveIndex, in parts: [Part], _ place: String
  ) throws(LiveListError) {
    let section = index.section ?? 0
    guard parts.indices.contains(section) else { throw .noSection(place, section, count: parts.count) }
    let items = parts[section].items
    guard items.indices.contains(index.row) else { throw .noRow(place, index, count: items.count) }
    let found = items[index.row].reference
    guard found == reference else { throw .wrongObject(place, index, named: reference, found: found) }
  }

  private func removeSources(_ changes: [LiveChange], from parts: inout [Part], _ place: String) throws(LiveListError) {
    // Two objects never stand at one place, so after `checkNames` the sources are all different.
    var sources: [Int: Set<Int>] = [:]
    for change in changes where change.kind == .delete || change.kind == .move {
      guard let index = change.index else { continue }
      sources[index.section ?? 0, default: []].insert(index.row)
    }
    for (section, rows) in sources {
      var kept: [Item] = []
      kept.reserveCapacity(parts[section].items.count - rows.count)
      for (row, item) in parts[section].items.enumerated() where !rows.contains(row) { kept.append(item) }
      parts[section].items = kept
    }
  }

  private func changeSections(
    _ changes: [LiveSectionChange], of parts: inout [Part], _ place: String
  ) throws(LiveListError) {
    let place = "\(place), sectionChanges"
    for change in try Self.sorted(changes.filter { !$0.isInsertion }, place).reversed() {
      guard parts.indices.contains(change.index) else { throw .noSection(place, change.index, count: parts.count) }
      let part = parts[change.index]
      let name = part.name ?? .null
      guard name == change.name else { throw .wrongSection(place, change.index, named: change.name, found: name) }
      guard part.items.isEmpty else { throw .sectionRows(place, change.index, name: name, count: part.items.count) }
      parts.remove(at: change.index)
    }
    for change in try Self.sorted(changes.filter(\.isInsertion), place) {
      guard (0...parts.count).contains(change.index) else { throw .noSection(place, change.index, count: parts.count) }
      parts.insert(Part(name: change.name, items: []), at: change.index)
    }
  }

  private static func sorted(
    _ changes: [LiveSectionChange], _ place: String
  ) throws(LiveListError) -> [LiveSectionChange] {
    let sorted = changes.sorted { $0.index < $1.index }
    for (change, next) in zip(sorted, sorted.dropFirst()) where change.index == next.index {
      throw .sectionTwice(place, change.index)
    }
    return sorted
  }

  private func placeTargets(_ changes: [LiveChange], in parts: inout [Part], _ place: String) throws(LiveListError) {
    var targets: [Int: [Int: Item]] = [:]
    for (number, change) in changes.enumerated() where change.kind == .insert || change.kind == .move {
      let place = "\(place), changes[\(number)]"
      guard let index = change.newIndex, let value = change.value else { continue }
      let section = index.section ?? 0
      guard parts.indices.contains(section) else { throw .noSection(place, section, count: parts.count) }
      let item = Item(reference: change.reference, value: value)
      let other = targets[section, default: [:]].updateValue(item, forKey: index.row)
      guard other == nil else { throw .placedTwice(place, index) }
    }
    for (section, targets) in targets {
      let count = parts[section].items.count + targets.count
      if let row = targets.keys.max(), row >= count {
        throw .noRow(place, LiveIndex(section: isSectioned ? section : nil, row: row), count: count)
      }
      var rest = parts[section].items[...]
      parts[section].items = (0..<count).compactMap { targets[$0] ?? rest.popFirst() }
    }
  }

  private func update(_ changes: [LiveChange], in parts: inout [Part], _ place: String) throws(LiveListError) {
    for (number, change) in changes.enumerated() where change.kind == .update {
      guard let index = change.newIndex, let value = change.value else { continue }
      try Self.check(change.reference, at: index, in: parts, "\(place), changes[\(number)]")
      parts[index.section ?? 0].items[index.row].value = value
    }
  }
}
