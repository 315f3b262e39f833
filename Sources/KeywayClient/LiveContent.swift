package import KeyValueModel

/// A `content` event, taken apart: what one commit did to a live list.
package struct LiveContent: Hashable, Sendable {
  /// The commit.
  package var revision: Int64
  /// How many rows the list has afterwards.
  package var count: Int
  /// How many rows there are afterwards, those outside of the window too.
  package var total: Int
  /// For how many objects the filter fails afterwards.
  package var failed: Int
  /// What became of rows; each object is named once.
  package var changes: [LiveChange]
  /// Which sections came and went.
  package var sectionChanges: [LiveSectionChange]
  /// All sections afterwards, where the query has aggregates and sections.
  package var sections: [LiveSummary]?
  /// What all rows come to afterwards, where the query has aggregates and no sections.
  package var aggregates: JSONObject?

  /// The content in the data of an event, for a list with or without sections.
  package init(_ data: Value, isSectioned: Bool) throws(LiveListError) {
    let reader = try LiveEventReader(event: "content", data: data)
    revision = try reader.integer("revision")
    (count, total, failed) = try reader.counts()
    changes = []
    for change in try reader.readers("changes") {
      changes.append(try Self.change(change, isSectioned: isSectioned))
    }
    sectionChanges = []
    for change in try reader.readers("sectionChanges", isRequired: false) {
      guard isSectioned else { throw reader.malformed("sectionChanges", "nothing, in a list without sections") }
      sectionChanges.append(try Self.sectionChange(change))
    }
    aggregates = try reader.aggregates()
    guard !(reader.members["sections"] ?? .null).isNull else { return }
    guard isSectioned else { throw reader.malformed("sections", "nothing, in a list without sections") }
    sections = try reader.sections()
  }

  private static func change(_ reader: LiveEventReader, isSectioned: Bool) throws(LiveListError) -> LiveChange {
    guard let kind = LiveChange.Kind(rawValue: try reader.text("type")) else {
      throw reader.malformed("type", "insert, delete, move or update")
    }
    var change = LiveChange(kind: kind, reference: try reader.reference("object"))
    if kind.hasIndex { change.index = try reader.index("index", isSectioned: isSectioned) }
    if kind.hasNewIndex {
      change.newIndex = try reader.index("newIndex", isSectioned: isSectioned)
      let value = try reader.object("value")
      if let name = value["@ref"], name != .string(change.reference.text) {
        throw .malformed("\(reader.place), value.@ref", wanted: change.reference.text, found: name.json)
      }
      change.value = value
    }
    return change
  }

  private static func sectionChange(_ reader: LiveEventReader) throws(LiveListError) -> LiveSectionChange {
    guard let name = reader.members["name"] else { throw reader.malformed("name", "a value") }
    switch try reader.text("type") {
    case "insert": return LiveSectionChange(isInsertion: true, name: name, index: try reader.index("newIndex"))
    case "delete": return LiveSectionChange(isInsertion: false, name: name, index: try reader.index("index"))
    default: throw reader.malformed("type", "insert or delete")
    }
  }
}

/// What one commit did to one row of a live list.
package struct LiveChange: Hashable, Sendable {
  /// What became of a row.
  package enum Kind: String, Hashable, Sendable {
    case insert, delete, move, update

    /// Whether the row was in the list before.
    package var hasIndex: Bool { self != .insert }
    /// Whether the row is in the list afterwards.
    package var hasNewIndex: Bool { self != .delete }
  }

  /// What became of it.
  package var kind: Kind
  /// The object that it shows.
  package var reference: Reference
  /// Its place in the list before the commit; nil for an insertion.
  package var index: LiveIndex?
  /// Its place in the list after the commit; nil for a deletion.
  package var newIndex: LiveIndex?
  /// Its value after the commit; nil for a deletion.
  package var value: JSONObject?
}

/// A section that came or went with a commit.
package struct LiveSectionChange: Hashable, Sendable {
  /// Whether it came; else it went.
  package var isInsertion: Bool
  /// The value that its rows share.
  package var name: Value
  /// Its place: after the commit where it came, before where it went.
  package var index: Int
}

/// What an event says of a section as a whole.
package struct LiveSummary: Hashable, Sendable {
  /// The value that its rows share.
  package var name: Value
  /// How many of its rows are in the list.
  package var count: Int
  /// What all its rows come to, those outside of the window too, by the text of the operators; nil where the query has
  /// none.
  package var aggregates: JSONObject?
}

/// Reads the members of an event's JSON, and says of what is not as it should be where it stands.
struct LiveEventReader {
  /// Where the object stands: `content 57, changes[2]`.
  let place: String
  /// The object.
  let members: JSONObject

  /// A reader of the data of an event.
  init(event: String, data: Value) throws(LiveListError) {
    let members = try Self.object(data, at: event)
    place = event + (members["revision"]?.asInteger.map { " \($0)" } ?? "")
    self.members = members
  }

  private init(place: String, members: JSONObject) {
    self.place = place
    self.members = members
  }

  /// The objects in an array; none where it is missing and need not be there.
  func readers(_ name: String, isRequired: Bool = true) throws(LiveListError) -> [LiveEventReader] {
    if !isRequired, (members[name] ?? .null).isNull { return [] }
    guard let elements = members[name]?.asArray else { throw malformed(name, "an array") }
    var readers: [LiveEventReader] = []
    readers.reserveCapacity(elements.count)
    for (index, element) in elements.enumerated() {
      let place = "\(place), \(name)[\(index)]"
      readers.append(LiveEventReader(place: place, members: try Self.object(element, at: place)))
    }
    return readers
  }

  func object(_ name: String) throws(LiveListError) -> JSONObject {
    try Self.object(members[name] ?? .null, at: "\(place), \(name)")
  }

  func text(_ name: String) throws(LiveListError) -> String {
    guard let text = members[name]?.asString else { throw malformed(name, "a string") }
    return text
  }

  func reference(_ name: String) throws(LiveListError) -> Reference {
    guard let reference = Reference(try text(name)) else { throw malformed(name, "a reference") }
    return reference
  }

  func integer(_ name: String) throws(LiveListError) -> Int64 {
    guard let integer = members[name]?.asInteger else { throw malformed(name, "a whole number") }
    return integer
  }

  func index(_ name: String) throws(LiveListError) -> Int {
    guard let index = Self.index(members[name]) else { throw malformed(name, "an index") }
    return index
  }

  /// A row's place, of a list with or without sections.
  func index(_ name: String, isSectioned: Bool) throws(LiveListError) -> LiveIndex {
    guard isSectioned else { return LiveIndex(row: try index(name)) }
    guard let pair = members[name]?.asArray, pair.count == 2, let section = Self.index(pair[0]),
      let row = Self.index(pair[1])
    else { throw malformed(name, "[section,row]") }
    return LiveIndex(section: section, row: row)
  }

  /// How many rows the list has, how many there are, and for how many objects the filter fails.
  func counts() throws(LiveListError) -> (count: Int, total: Int, failed: Int) {
    let count = try index("count")
    let total = try index("total")
    guard total >= count else { throw malformed("total", "\(count) or more") }
    return (count, total, members["failed"] == nil ? 0 : try index("failed"))
  }

  /// The sections as wholes.
  func sections() throws(LiveListError) -> [LiveSummary] {
    var sections: [LiveSummary] = []
    for section in try readers("sections") {
      guard let name = section.members["name"] else { throw section.malformed("name", "a value") }
      sections.append(
        LiveSummary(name: name, count: try section.index("count"), aggregates: try section.aggregates()))
    }
    return sections
  }

  /// What rows come to, by the text of the operators; nil where that is not said.
  func aggregates() throws(LiveListError) -> JSONObject? {
    (members["aggregates"] ?? .null).isNull ? nil : try object("aggregates")
  }

  func malformed(_ name: String, _ wanted: String) -> LiveListError {
    .malformed("\(place), \(name)", wanted: wanted, found: members[name]?.json ?? "missing")
  }

  private static func object(_ value: Value, at place: String) throws(LiveListError) -> JSONObject {
    guard let object = value.asObject else { throw .malformed(place, wanted: "an object", found: value.json) }
    return object
  }

  private static func index(_ value: Value?) -> Int? {
    value?.asInteger.flatMap { $0 < 0 ? nil : Int(exactly: $0) }
  }
}
