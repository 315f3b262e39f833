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
    change.keys = (reader.members["keys"]?.asArray ?? []).compactMap(\.asString)
    change.reason = reader.members["reason"]?.asString
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
