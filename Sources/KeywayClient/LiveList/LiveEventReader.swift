internal import KeyValueModel

/// Reads the members of an event's JSON, and says of what is not as it should be where it stands.
struct LiveEventReader {
  /// Where the object stands: `content 57, changes[2]`.
  let place: String
  /// The object.
  let members: JSONObject

  /// A reader of the data of an event.
  init(event: String, data: Value) throws(LiveListError) {
    let members = try Self.object(data, at: event)
    if case .integer(let revision)? = members["revision"] {
      place = "\(event) \(revision)"
    } else {
      place = event
    }
    self.members = members
  }

  private init(place: String, members: JSONObject) {
    self.place = place
    self.members = members
  }

  /// The objects in an array; none where it is missing and need not be there.
  func readers(_ name: String, isRequired: Bool = true) throws(LiveListError) -> [LiveEventReader] {
    if !isRequired, (members[name] ?? .null).isNull { return [] }
    guard case .array(let elements)? = members[name] else { throw malformed(name, "an array") }
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
    guard case .string(let text)? = members[name] else { throw malformed(name, "a string") }
    return text
  }

  func reference(_ name: String) throws(LiveListError) -> Reference {
    guard let reference = Reference(try text(name)) else { throw malformed(name, "a reference") }
    return reference
  }

  func integer(_ name: String) throws(LiveListError) -> Int64 {
    guard case .integer(let integer)? = members[name] else { throw malformed(name, "a whole number") }
    return integer
  }

  func index(_ name: String) throws(LiveListError) -> Int {
    guard let index = Self.index(members[name]) else { throw malformed(name, "an index") }
    return index
  }

  /// A row's place, of a list with or without sections.
  func index(_ name: String, isSectioned: Bool) throws(LiveListError) -> LiveIndex {
    guard isSectioned else { return LiveIndex(row: try index(name)) }
    guard case .array(let pair)? = members[name], pair.count == 2, let section = Self.index(pair[0]),
      let row = Self.index(pair[1])
    else { throw malformed(name, "[section,row]") }
    return LiveIndex(section: section, row: row)
  }

  func malformed(_ name: String, _ wanted: String) -> LiveListError {
    .malformed("\(place), \(name)", wanted: wanted, found: members[name]?.json ?? "missing")
  }

  private static func object(_ value: Value, at place: String) throws(LiveListError) -> JSONObject {
    guard case .object(let object) = value else {
      throw .malformed(place, wanted: "an object", found: value.json)
    }
    return object
  }

  private static func index(_ value: Value?) -> Int? {
    guard case .integer(let integer)? = value, integer >= 0 else { return nil }
    return Int(exactly: integer)
  }
}
