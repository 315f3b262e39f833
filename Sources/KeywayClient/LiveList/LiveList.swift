package import KeyValueModel

/// The rows of a live query, kept up to date by the events of its stream.
///
/// A value: its holder applies the events in their order, from one task at a time. It checks everything: an event
/// that contradicts the list is an error and leaves the list as it was, so a mistake of server or client shows where it
/// happens and not as a row that is wrong from then on.
package struct LiveList: Hashable, Sendable {
  /// A row as it is stored: its index follows from where it stands.
  struct Item: Hashable, Sendable {
    var reference: Reference
    var value: JSONObject
  }

  /// A section as it is stored; a list without sections has one, whose name is nil.
  struct Part: Hashable, Sendable {
    var name: Value?
    var items: [Item]
  }

  /// Whether the server groups the rows.
  package private(set) var isSectioned = false
  /// The revision that the list shows; nil until the first results.
  package internal(set) var revision: Int64?
  /// Whether results have come, and no `reset` since.
  package private(set) var isCurrent = false

  var parts = [Part(name: nil, items: [])]
  /// The objects of all rows.
  var references: Set<Reference> = []

  /// The list of a stream before its first event.
  package init() {}

  /// How many rows there are.
  package var count: Int { references.count }

  /// Whether an object has a row.
  package func contains(_ reference: Reference) -> Bool { references.contains(reference) }

  /// The sections with their rows; one without a name in a list without sections.
  package var sections: [LiveSection] {
    parts.enumerated().map { index, part in
      LiveSection(name: part.name, index: isSectioned ? index : nil, items: part.items)
    }
  }

  /// All rows from the top.
  package var rows: [LiveRow] { sections.flatMap(\.self) }

  /// Applies an event: `results` replaces the rows, `content` changes them and is given back, after `reset` the next
  /// `results` is awaited. Everything else is none of the list's business.
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
    var items: [Item] = []
    for object in try reader.readers("objects") {
      let reference = try object.reference("@ref")
      guard references.insert(reference).inserted else { throw .namedTwice(object.place, reference) }
      items.append(Item(reference: reference, value: object.members))
    }
    let count = try reader.index("count")
    guard count == items.count else { throw .wrongCount(reader.place, stated: count, found: items.count) }
    let isSectioned = !(reader.members["sections"] ?? .null).isNull
    parts = isSectioned ? try Self.parts(of: items, reader) : [Part(name: nil, items: items)]
    self.references = references
    self.revision = revision
    self.isSectioned = isSectioned
    isCurrent = true
  }

  private static func parts(of items: [Item], _ reader: LiveEventReader) throws(LiveListError) -> [Part] {
    var parts: [Part] = []
    var rest = items[...]
    for (index, section) in try reader.readers("sections").enumerated() {
      guard let name = section.members["name"] else { throw section.malformed("name", "a value") }
      let count = try section.index("count")
      guard count > 0 else { throw .sectionRows(section.place, index, name: name, count: count) }
      guard count <= rest.count else { throw .wrongCount(section.place, stated: count, found: rest.count) }
      parts.append(Part(name: name, items: Array(rest.prefix(count))))
      rest = rest.dropFirst(count)
    }
    guard rest.isEmpty else {
      throw .wrongCount("\(reader.place), sections", stated: items.count - rest.count, found: items.count)
    }
    return parts
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
