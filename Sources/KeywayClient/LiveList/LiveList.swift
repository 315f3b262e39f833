package import KeyValueModel

/// The rows of a live query, kept up to date by the events of its stream.
///
/// A value: its holder applies the events in their order, from one task at a time. It checks everything: an event
/// that contradicts the list is an error and leaves the list as it was, so a mistake of server or client shows where it
/// happens and not as a row that is wrong from then on.
package struct LiveList: Hashable, Sendable {
  /// Whether the server groups the rows.
  package private(set) var isSectioned = false
  /// The revision that the list shows; nil until the first results.
  package internal(set) var revision: Int64?
  /// Whether results have come, and no `reset` since.
  package private(set) var isCurrent = false

  /// The sections with their rows; one without a name in a list without sections.
  package internal(set) var sections = [LiveSection(name: nil, rows: [])]
  /// How many rows there are, those outside of the window too.
  package internal(set) var total = 0
  /// For how many objects the filter failed when the list was told of anything last.
  package internal(set) var failed = 0
  /// What all rows come to, those outside of the window too, by the text of the operators; nil where the query has
  /// none, or has sections.
  package internal(set) var aggregates: JSONObject?
  /// The objects of all rows.
  var references: Set<Reference> = []

  /// The list of a stream before its first event.
  package init() {}

  /// How many rows there are.
  package var count: Int { references.count }

  /// All rows from the top.
  package var rows: [LiveRow] { sections.flatMap(\.rows) }

  /// Applies an event: `results` replaces the rows, `content` changes them and is given back, after `reset` the next
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

  /// How deep an event may nest: deeper than a value that the server takes, which stands inside of it.
  private static let depthLimit = 96
}
