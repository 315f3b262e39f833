import KeyValueModel

@testable import KeyValueObserving

/// The list of a client, which knows only the first result and the events since then.
struct ClientList {
  struct Row: Equatable {
    let reference: Reference
    var shown: [String: Value]
  }

  struct Section: Equatable {
    /// The JSON of its name, or nil if the query has no sections; then the list has one of these.
    let name: String?
    var rows: [Row] = []
    var aggregates: [Value] = []
  }

  private(set) var sections: [Section]
  private(set) var total: Int
  private(set) var failed: Int

  init(_ result: QueryResult) {
    (total, failed) = (result.rowCount, result.failed)
    sections =
      result.windowSections?.map { Section(name: $0.name.json, aggregates: $0.aggregates) }
      ?? [Section(name: nil, aggregates: result.aggregates)]
    var left = result.windowSections?.map(\.count) ?? [result.count]
    var section = 0
    for row in result.window {
      while left[section] == 0 { section += 1 }
      left[section] -= 1
      sections[section].rows.append(Self.row(row, result.query))
    }
  }

  static func row(_ row: QueryRow, _ query: Query) -> Row {
    Row(
      reference: row.reference,
      shown: Dictionary(
        uniqueKeysWithValues: zip(query.columns(of: row.entity).map { $0.name(in: row.entity) }, row.shown)))
  }

  /// Returns true if it shows the same as a fetch.
  func shows(_ list: NaiveList) -> Bool {
    let names = list.query.words.section == nil ? [nil] : list.sections.map { Optional($0.name) }
    return sections.map(\.name) == names
      && sections.flatMap(\.rows) == list.rows.map { Row(reference: $0.reference, shown: $0.shown) }
      && total == list.total && sections.map(\.aggregates) == list.aggregates
  }

  /// Applies a content of a query exactly as the specification says.
  mutating func apply(_ content: QueryContent, of query: Query) throws {
    let updated = try content.changes.filter { $0.kind == .update }.map { try row(at: $0.index, named: $0.object) }
    try agree(Set(updated.map(\.reference)).count == updated.count, "a row is updated twice")
    let sources = content.changes.filter { $0.kind == .delete || $0.kind == .move }
    for change in sources { _ = try row(at: change.index, named: change.object) }
    for (section, row) in sources.compactMap({ Self.place($0.index) }).sorted(by: >) {
      sections[section].rows.remove(at: row)
    }
    try applySections(content.sectionChanges, isSectioned: query.words.section != nil)
    let targets = content.changes.filter { $0.kind == .insert || $0.kind == .move }
      .sorted { (Self.place($0.newIndex) ?? (0, 0)) < (Self.place($1.newIndex) ?? (0, 0)) }
    for change in targets {
      guard let place = Self.place(change.newIndex), let row = change.row, sections.indices.contains(place.section),
        place.row <= sections[place.section].rows.count
      else { throw Difference(text: "no place for \(line(change))") }
      sections[place.section].rows.insert(Self.row(row, query), at: place.row)
    }
    for change in content.changes where change.kind == .update {
      _ = try row(at: change.newIndex, named: change.object)
      guard let place = Self.place(change.newIndex), let row = change.row else { continue }
      sections[place.section].rows[place.row] = Self.row(row, query)
    }
    try agree(sections.allSatisfy { $0.name == nil || !$0.rows.isEmpty }, "an empty section is left")
    (total, failed) = (content.total, content.failed)
    try applyAggregates(content, of: query)
  }

  private mutating func applyAggregates(_ content: QueryContent, of query: Query) throws {
    guard query.words.section != nil else {
      sections[0].aggregates = content.aggregates
      return
    }
    for index in sections.indices { sections[index].aggregates = [] }
    guard let told = content.sections else { return }
    let isSame =
      sections.map(\.name) == told.map { Optional($0.name.json) } && sections.map(\.rows.count) == told.map(\.count)
    try agree(isSame, "the sections are others than told")
    for (index, section) in told.enumerated() { sections[index].aggregates = section.aggregates }
  }

  private mutating func applySections(_ changes: [SectionChange], isSectioned: Bool) throws {
    var insertions: [(index: Int, name: String)] = []
    var deletions: [(index: Int, name: String)] = []
    for change in changes {
      switch change {
      case .insert(let name, let index): insertions.append((index, name.json))
      case .delete(let name, let index): deletions.append((index, name.json))
      }
    }
    for (index, name) in deletions.sorted(by: { $0.index > $1.index }) {
      try agree(
        sections.indices.contains(index) && sections[index].name == name && sections[index].rows.isEmpty,
        "no empty section \(name)")
      sections.remove(at: index)
    }
    if isSectioned { sections.removeAll { $0.name == nil } }
    for (index, name) in insertions.sorted(by: { $0.index < $1.index }) {
      try agree(index <= sections.count, "no place for section \(name)")
      sections.insert(Section(name: name), at: index)
    }
    if !isSectioned, sections.isEmpty { sections = [Section(name: nil)] }
  }

  private func row(at position: RowPosition?, named reference: Reference) throws -> Row {
    guard let place = Self.place(position), sections.indices.contains(place.section),
      sections[place.section].rows.indices.contains(place.row),
      sections[place.section].rows[place.row].reference == reference
    else { throw Difference(text: "\(reference) is not at \(position.map { "\($0)" } ?? "-")") }
    return sections[place.section].rows[place.row]
  }

  private static func place(_ position: RowPosition?) -> (section: Int, row: Int)? {
    switch position {
    case .row(let row): (0, row)
    case .sectioned(let section, let row): (section, row)
    case nil: nil
    }
  }
}
