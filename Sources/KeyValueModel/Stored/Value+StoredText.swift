/// How a store writes values. Either way doubles have a fraction or an exponent, so that they come back as doubles.
enum StoredValueForm {
  /// Exactly this value comes back: what JSON writes like something else is marked (`StoredJSON.Mark`).
  case exact
  /// Plain JSON for others to read: references are strings, collections arrays, and doubles that are not finite null.
  case plain
}

extension Value {
  /// Appends the value as compact JSON.
  func appendStoredText(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    switch (self, form) {
    case (.null, _), (.bool, _), (.integer, _), (.string, _), (.reference, .plain): appendJSON(to: &bytes)
    case (.number(let number), _) where number.isFinite, (.rounded(let number), _):
      bytes.append(contentsOf: number.description.utf8)
    case (.number(let number), .exact): Self.append(.number, .string(number.description), to: &bytes)
    case (.number, .plain): Value.null.appendJSON(to: &bytes)
    case (.reference(let reference), .exact): Self.append(.reference, .string(reference.text), to: &bytes)
    case (.array(let elements), _): bytes.appendList(elements) { $0.appendStoredText(form, to: &$1) }
    case (.members(let list), .plain): bytes.appendList(list) { $0.appendStoredText(form, to: &$1) }
    case (.members(let list), .exact):
      bytes.appendMark(.members)
      bytes.append(contentsOf: list.isOrdered ? "[true,".utf8 : "[false,".utf8)
      bytes.appendList(list) { $0.appendStoredText(form, to: &$1) }
      bytes.append(contentsOf: "]}".utf8)
    case (.object(let object), _):
      let isMarked = form == .exact && object.members.first.map { StoredJSON.isMark($0.key) } == true
      if isMarked { bytes.appendMark(.object) }
      object.appendStoredText(form, to: &bytes)
      if isMarked { bytes.append(UInt8(ascii: "}")) }
    }
  }

  private static func append(_ mark: StoredJSON.Mark, _ value: Value, to bytes: inout [UInt8]) {
    bytes.appendMark(mark)
    value.appendJSON(to: &bytes)
    bytes.append(UInt8(ascii: "}"))
  }
}

extension JSONObject {
  /// Appends the object, without a mark of its own: only where nothing but an object can stand does it come back
  /// exactly.
  func appendStoredText(_ form: StoredValueForm, to bytes: inout [UInt8]) {
    bytes.appendObject(members) { $0.appendStoredText(form, to: &$1) }
  }
}

extension [UInt8] {
  fileprivate mutating func appendMark(_ mark: StoredJSON.Mark) {
    append(contentsOf: "{\"".utf8)
    append(contentsOf: mark.rawValue.utf8)
    append(contentsOf: "\":".utf8)
  }
}
