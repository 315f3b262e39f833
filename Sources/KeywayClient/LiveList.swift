package import KeyValueModel

/// The rows of a live query, kept up to date by the events of its stream.
///
/// A value: its owner applies the events in their order, from one task at a time. Everything is checked: an event that
/// contradicts the list is an error and leaves the list unchanged, so a mistake of server or client shows where it
/// happens, and not as a row that is wrong from then on.
package struct LiveList: Hashable, Sendable {
  /// True if the server groups the rows.
  package private(set) var isSectioned = false
  /// The revision that the list shows; nil until the first results.
  package private(set) var revision: Int64?
  /// True if results have come, and no `reset` since.
  package private(set) var isCurrent = false

  /// The sections with their rows; one without a name in a list without sections.
  package private(set) var sections = [LiveSection(name: nil, rows: [])]
  /// The number of all rows, including those outside of the window.
  package private(set) var total = 0
  /// The number of objects for which the filter failed at the last event.
  package private(set) var failed = 0
  /// The aggregates of all rows, including those outside of the window, by the text of the operators; nil if the query
  /// has none, or has sections.
  package private(set) var aggregates: JSONObject?
  /// The objects of all rows.
  private(set) var references: Set<Reference> = []

  /// Creates the list of a stream before its first event.
  package init() {}

  /// The number of rows in the list.
  package var count: Int { references.count }

  /// All rows from the top.
  package var rows: [LiveRow] { sections.flatMap(\.rows) }

  /// Applies an event: `results` replaces the rows; `content` changes them and is returned; after `reset`, the next
  /// `results` is awaited. Other events do not concern the list.
  @discardableResult
  package mutating func apply(_ event: ServerSentEvent) throws(LiveListError) -> LiveContent? {
    switch event.event {
    case "results":
      try replace(results: try Self.data(of: event))
    case "content":
      let data = try Self.data(of: event)
      guard isCurrent else { throw .contentBeforeResults(try LiveEventReader(event: "content", data: data).place) }
      let content = try LiveContent(data, isSectioned: isSectioned)
      try apply(content)
      return content
    case "reset":
      isCurrent = false
    default:
      break
    }
    return nil
  }

  /// Replaces all rows by those of a `results` event.
  package mutating func replace(results data: Value) throws(LiveListError) {
    let reader = try LiveEventReader(event: "results", data: data)
    let revision = try reader.integer("revision")
    var references: Set<Reference> = []
    var rows: [LiveRow] = []
    for object in try reader.readers("objects") {
      let reference = try object.reference("@ref")
      guard references.insert(reference).inserted else { throw .namedTwice(object.place, reference) }
      rows.append(LiveRow(reference: reference, value: object.members))
    }
    let (count, total, failed) = try reader.counts()
    guard count == rows.count else { throw .wrongCount(reader.place, stated: count, found: rows.count) }
    let isSectioned = !(reader.members["sections"] ?? .null).isNull
    let aggregates = try reader.aggregates()
    sections = isSectioned ? try Self.sections(of: rows, reader) : [LiveSection(name: nil, rows: rows)]
    (self.total, self.failed, self.aggregates) = (total, failed, aggregates)
    self.references = references
    self.revision = revision
    self.isSectioned = isSectioned
    isCurrent = true
  }

  private static func sections(
    of rows: [LiveRow], _ reader: LiveEventReader
  ) throws(LiveListError) -> [LiveSection] {
    var sections: [LiveSection] = []
    var rest = rows[...]
    for (index, section) in try reader.sections().enumerated() {
      let (place, count) = ("\(reader.place), sections[\(index)]", section.count)
      guard count > 0 else { throw .sectionRows(place, index, name: section.name, count: count) }
      guard count <= rest.count else { throw .wrongCount(place, stated: count, found: rest.count) }
      sections.append(
        LiveSection(name: section.name, rows: Array(rest.prefix(count)), aggregates: section.aggregates))
      rest = rest.dropFirst(count)
    }
    guard rest.isEmpty else {
      throw .wrongCount("\(reader.place), sections", stated: rows.count - rest.count, found: rows.count)
    }
    return sections
  }

  private static func data(of event: ServerSentEvent) throws(LiveListError) -> Value {
    do {
      return try Value(json: event.data, depthLimit: Self.depthLimit)
    } catch {
      throw .malformed(event.event, wanted: "JSON", found: String(describing: error))
    }
  }

  /// The maximum nesting depth of an event: greater than that of a value that the server accepts, which the event
  /// contains.
  private static let depthLimit = 96
}

// MARK: Applying a content

/// Applying a `content`: first the rows at all sources are removed, then sections are deleted and inserted, then the
/// rows at all targets are inserted, and last the remaining rows are updated.
extension LiveList {
  /// Changes the list as one commit did. If the content contradicts the list, the list is unchanged.
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

  /// Takes over the summaries of the sections, which must be those of the list.
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

  /// Checks that each object is named once, is at the position given for it, and is new if it is inserted.
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
    // Two objects are never at one position, so after `checkNames` all sources differ.
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
      // A new section may be inserted behind the last one.
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

/// A row of a live list, as it is now.
package struct LiveRow: Hashable, Sendable {
  /// The object.
  package var reference: Reference
  /// The keys and values as the server sent them last.
  package var value: JSONObject

  /// Creates a row of an object with these keys and values.
  package init(reference: Reference, value: JSONObject) {
    self.reference = reference
    self.value = value
  }
}

/// A section of a live list with its rows, as it is now.
package struct LiveSection: Hashable, Sendable {
  /// The value that the rows of the section share; nil in a list without sections.
  package var name: Value?
  /// The rows from the top.
  package var rows: [LiveRow]
  /// The aggregates of all its rows, including those outside of the window, by the text of the operators; nil if the
  /// query has none.
  package var aggregates: JSONObject?
  /// The number of rows in the section.
  package var count: Int { rows.count }
}

/// A row's position in a live list: its index, or the index of its section and its own within that.
package struct LiveIndex: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The index of the section; nil in a list without sections.
  package var section: Int?
  /// The index of the row, within its section if there are sections.
  package var row: Int

  /// The position as in the protocol: `4`, or `[1,4]`.
  package var description: String {
    guard let section else { return String(row) }
    return "[\(section),\(row)]"
  }

  /// The order of rows from the top.
  package static func < (left: LiveIndex, right: LiveIndex) -> Bool {
    (left.section ?? 0, left.row) < (right.section ?? 0, right.row)
  }
}

/// The reason why an event of a live list is refused: it is not as the specification says, or it contradicts the list.
///
/// Each case begins with the place in the event, such as `content 57, changes[2]`.
package enum LiveListError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A member is missing, or is of another kind than it should be.
  case malformed(String, wanted: String, found: String)
  /// A `content` without `results` before it, or between `reset` and `results`.
  case contentBeforeResults(String)
  /// The event is older than the list.
  case outdated(String, listRevision: Int64)
  /// The row does not exist in a section with `count` rows.
  case noRow(String, LiveIndex, count: Int)
  /// The section does not exist among `count` sections.
  case noSection(String, Int, count: Int)
  /// Another object than the named one is at that position.
  case wrongObject(String, LiveIndex, named: Reference, found: Reference)
  /// A section of another name is at that index.
  case wrongSection(String, Int, named: Value, found: Value)
  /// The object is named more than once.
  case namedTwice(String, Reference)
  /// The object is to be inserted, and is in the list already.
  case alreadyListed(String, Reference)
  /// Two rows are to be inserted at that position.
  case placedTwice(String, LiveIndex)
  /// Two sections are to be inserted, or deleted, at that index.
  case sectionTwice(String, Int)
  /// A section is deleted that still has rows, or remains without any.
  case sectionRows(String, Int, name: Value, count: Int)
  /// The list has another number of rows than the event states.
  case wrongCount(String, stated: Int, found: Int)

  /// The error as a sentence.
  package var description: String {
    switch self {
    case .malformed(let place, let wanted, let found): "\(place) must be \(wanted), and is \(found)"
    case .contentBeforeResults(let place): "\(place) came before the results that it changes"
    case .outdated(let place, let revision): "\(place) is older than the list, which is at revision \(revision)"
    case .noRow(let place, let index, let count): "\(place) names row \(index) of \(count)"
    case .noSection(let place, let index, let count): "\(place) names section \(index) of \(count)"
    case .wrongObject(let place, let index, let named, let found):
      "\(place) names \(named) at \(index), where \(found) is"
    case .wrongSection(let place, let index, let named, let found):
      "\(place) names section \(named.json) at \(index), where \(found.json) is"
    case .namedTwice(let place, let reference): "\(place) names \(reference) a second time"
    case .alreadyListed(let place, let reference): "\(place) inserts \(reference), which is in the list already"
    case .placedTwice(let place, let index): "\(place) places a second row at \(index)"
    case .sectionTwice(let place, let index): "\(place) names section \(index) a second time"
    case .sectionRows(let place, let index, let name, let count):
      "\(place): section \(name.json) at \(index) has \(count) rows"
    case .wrongCount(let place, let stated, let found):
      "\(place) states \(stated) rows, but there are \(found)"
    }
  }
}
