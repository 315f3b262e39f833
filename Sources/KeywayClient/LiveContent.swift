package import KeyValueModel

/// A parsed `content` event: the effect of one commit on a live list.
package struct LiveContent: Hashable, Sendable {
  /// The revision of the commit.
  package var revision: Int64
  /// The number of rows in the list after the commit.
  package var count: Int
  /// The number of all rows after the commit, including those outside of the window.
  package var total: Int
  /// The number of objects for which the filter fails after the commit.
  package var failed: Int
  /// The changes of rows; each object is named once.
  package var changes: [LiveChange]
  /// The inserted and deleted sections.
  package var sectionChanges: [LiveSectionChange]
  /// All sections after the commit, if the query has aggregates and sections.
  package var sections: [LiveSummary]?
  /// The aggregates of all rows after the commit, if the query has aggregates and no sections.
  package var aggregates: JSONObject?

  /// Creates the content from the data of an event, for a list with or without sections.
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

/// The effect of one commit on one row of a live list.
package struct LiveChange: Hashable, Sendable {
  /// The kind of a change.
  package enum Kind: String, Hashable, Sendable {
    case insert, delete, move, update

    /// True if the row was in the list before.
    package var hasIndex: Bool { self != .insert }
    /// True if the row is in the list afterwards.
    package var hasNewIndex: Bool { self != .delete }
  }

  /// The kind of the change.
  package var kind: Kind
  /// The object of the row.
  package var reference: Reference
  /// The position in the list before the commit; nil for an insertion.
  package var index: LiveIndex?
  /// The position in the list after the commit; nil for a deletion.
  package var newIndex: LiveIndex?
  /// The value after the commit; nil for a deletion.
  package var value: JSONObject?
}

/// A section that a commit inserted or deleted.
package struct LiveSectionChange: Hashable, Sendable {
  /// True if the section was inserted, false if it was deleted.
  package var isInsertion: Bool
  /// The value that the rows of the section share.
  package var name: Value
  /// The index of the section: after the commit if it was inserted, before it if it was deleted.
  package var index: Int
}

/// The summary of a section in an event.
package struct LiveSummary: Hashable, Sendable {
  /// The value that the rows of the section share.
  package var name: Value
  /// The number of its rows that are in the list.
  package var count: Int
  /// The aggregates of all its rows, including those outside of the window, by the text of the operators; nil if the
  /// query has none.
  package var aggregates: JSONObject?
}

/// Reads the members of an event's JSON, and reports the place of anything invalid.
struct LiveEventReader {
  /// The place of the object: `content 57, changes[2]`.
  let place: String
  /// The object.
  let members: JSONObject

  /// Creates a reader of the data of an event.
  init(event: String, data: Value) throws(LiveListError) {
    let members = try Self.object(data, at: event)
    place = event + (members["revision"]?.asInteger.map { " \($0)" } ?? "")
    self.members = members
  }

  private init(place: String, members: JSONObject) {
    self.place = place
    self.members = members
  }

  /// Returns readers of the objects in an array; none if it is missing and not required.
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

  /// Returns a row's position in a list with or without sections.
  func index(_ name: String, isSectioned: Bool) throws(LiveListError) -> LiveIndex {
    guard isSectioned else { return LiveIndex(row: try index(name)) }
    guard let pair = members[name]?.asArray, pair.count == 2, let section = Self.index(pair[0]),
      let row = Self.index(pair[1])
    else { throw malformed(name, "[section,row]") }
    return LiveIndex(section: section, row: row)
  }

  /// Returns the number of rows in the list, the number of all rows, and the number of objects for which the filter
  /// fails.
  func counts() throws(LiveListError) -> (count: Int, total: Int, failed: Int) {
    let count = try index("count")
    let total = try index("total")
    guard total >= count else { throw malformed("total", "\(count) or more") }
    return (count, total, members["failed"] == nil ? 0 : try index("failed"))
  }

  /// Returns the summaries of the sections.
  func sections() throws(LiveListError) -> [LiveSummary] {
    var sections: [LiveSummary] = []
    for section in try readers("sections") {
      guard let name = section.members["name"] else { throw section.malformed("name", "a value") }
      sections.append(
        LiveSummary(name: name, count: try section.index("count"), aggregates: try section.aggregates()))
    }
    return sections
  }

  /// Returns the aggregates of rows, by the text of the operators; nil if there are none.
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
