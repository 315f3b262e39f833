import KeyValueModel

/// Applying a `content`: all sources go, sections go and come, all targets are placed, and what stayed is updated.
extension LiveList {
  /// Changes the list as one commit did. Where the content contradicts the list, the list stays as it was.
  package mutating func apply(_ content: LiveContent) throws(LiveListError) {
    let place = "content \(content.revision)"
    if let revision, content.revision < revision { throw .outdated(place, listRevision: revision) }
    try checkNames(content.changes, place)
    var sections = sections
    removeSources(content.changes, from: &sections)
    try changeSections(content.sectionChanges, of: &sections, place)
    try placeTargets(content.changes, in: &sections, place)
    try update(content.changes, in: &sections, place)
    for (index, section) in sections.enumerated() where isSectioned && section.rows.isEmpty {
      throw .sectionRows(place, index, name: section.name ?? .null, count: 0)
    }
    let count = sections.reduce(0) { $0 + $1.count }
    guard count == content.count else { throw .wrongCount(place, stated: content.count, found: count) }
    try summarize(content, &sections, place)
    (total, failed, aggregates) = (content.total, content.failed, content.aggregates)
    self.sections = sections
    revision = content.revision
    for change in content.changes where change.kind == .delete { references.remove(change.reference) }
    for change in content.changes where change.kind == .insert { references.insert(change.reference) }
  }

  /// Takes over what is said of the sections as wholes, which must be those of the list.
  private func summarize(
    _ content: LiveContent, _ sections: inout [LiveSection], _ place: String
  ) throws(LiveListError) {
    for index in sections.indices { sections[index].aggregates = nil }
    guard let told = content.sections else { return }
    guard told.count == sections.count else { throw .noSection(place, told.count, count: sections.count) }
    for (index, summary) in told.enumerated() {
      let name = sections[index].name ?? .null
      guard name == summary.name else { throw .wrongSection(place, index, named: summary.name, found: name) }
      guard summary.count == sections[index].count else {
        throw .wrongCount("\(place), sections[\(index)]", stated: summary.count, found: sections[index].count)
      }
      sections[index].aggregates = summary.aggregates
    }
  }

  /// Each object is named once, stands where it is said to stand, and is new where it is inserted.
  private func checkNames(_ changes: [LiveChange], _ place: String) throws(LiveListError) {
    var names: Set<Reference> = []
    for (number, change) in changes.enumerated() {
      let place = "\(place), changes[\(number)]"
      guard names.insert(change.reference).inserted else { throw .namedTwice(place, change.reference) }
      if let index = change.index {
        try Self.check(change.reference, at: index, in: sections, place)
      } else if references.contains(change.reference) {
        throw .alreadyListed(place, change.reference)
      }
    }
  }

  private static func checkSection(_ section: Int, below count: Int, _ place: String) throws(LiveListError) {
    guard section < count else { throw .noSection(place, section, count: count) }
  }

  private static func check(
    _ reference: Reference, at index: LiveIndex, in sections: [LiveSection], _ place: String
  ) throws(LiveListError) {
    let section = index.section ?? 0
    try checkSection(section, below: sections.count, place)
    let rows = sections[section].rows
    guard rows.indices.contains(index.row) else { throw .noRow(place, index, count: rows.count) }
    let found = rows[index.row].reference
    guard found == reference else { throw .wrongObject(place, index, named: reference, found: found) }
  }

  private func removeSources(_ changes: [LiveChange], from sections: inout [LiveSection]) {
    // Two objects never stand at one place, so after `checkNames` the sources are all different.
    var sources: [Int: Set<Int>] = [:]
    for change in changes where change.kind == .delete || change.kind == .move {
      guard let index = change.index else { continue }
      sources[index.section ?? 0, default: []].insert(index.row)
    }
    for (section, rows) in sources {
      let kept = sections[section].rows.enumerated().filter { !rows.contains($0.offset) }
      sections[section].rows = kept.map(\.element)
    }
  }

  private func changeSections(
    _ changes: [LiveSectionChange], of sections: inout [LiveSection], _ place: String
  ) throws(LiveListError) {
    let place = "\(place), sectionChanges"
    for change in try Self.sorted(changes.filter { !$0.isInsertion }, place).reversed() {
      try Self.checkSection(change.index, below: sections.count, place)
      let section = sections[change.index]
      let name = section.name ?? .null
      guard name == change.name else { throw .wrongSection(place, change.index, named: change.name, found: name) }
      guard section.rows.isEmpty else { throw .sectionRows(place, change.index, name: name, count: section.count) }
      sections.remove(at: change.index)
    }
    for change in try Self.sorted(changes.filter(\.isInsertion), place) {
      // A new section may come behind the last one.
      guard change.index <= sections.count else { throw .noSection(place, change.index, count: sections.count) }
      sections.insert(LiveSection(name: change.name, rows: []), at: change.index)
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

  private func placeTargets(
    _ changes: [LiveChange], in sections: inout [LiveSection], _ place: String
  ) throws(LiveListError) {
    var targets: [Int: [Int: LiveRow]] = [:]
    for (number, change) in changes.enumerated() where change.kind == .insert || change.kind == .move {
      let place = "\(place), changes[\(number)]"
      guard let index = change.newIndex, let value = change.value else { continue }
      let section = index.section ?? 0
      try Self.checkSection(section, below: sections.count, place)
      let row = LiveRow(reference: change.reference, value: value)
      let other = targets[section, default: [:]].updateValue(row, forKey: index.row)
      guard other == nil else { throw .placedTwice(place, index) }
    }
    for (section, targets) in targets {
      let count = sections[section].rows.count + targets.count
      if let row = targets.keys.max(), row >= count {
        throw .noRow(place, LiveIndex(section: isSectioned ? section : nil, row: row), count: count)
      }
      var rest = sections[section].rows[...]
      sections[section].rows = (0..<count).compactMap { targets[$0] ?? rest.popFirst() }
    }
  }

  private func update(
    _ changes: [LiveChange], in sections: inout [LiveSection], _ place: String
  ) throws(LiveListError) {
    for (number, change) in changes.enumerated() where change.kind == .update {
      guard let index = change.newIndex, let value = change.value else { continue }
      try Self.check(change.reference, at: index, in: sections, "\(place), changes[\(number)]")
      sections[index.section ?? 0].rows[index.row].value = value
    }
  }
}
