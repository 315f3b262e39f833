import KeyValueModel

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
