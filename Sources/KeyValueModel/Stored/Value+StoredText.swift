/// How a store writes values. Either way doubles have a fraction or an exponent, so that they come back as doubles.
enum StoredValueForm {
  /// Exactly this value comes back: what JSON cannot tell from something else is marked (`StoredJSON.Mark`).
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
    bytes.append(UInt8(ascii: "{"))
    var isFirst = true
    for (name, value) in members {
      if !isFirst { bytes.appendComma() }
      isFirst = false
      bytes.appendJSONString(name)
      bytes.append(UInt8(ascii: ":"))
      value.appendStoredText(form, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }
}

extension [UInt8] {
  /// Appends an array, whose elements `append` writes.
  mutating func appendList<Elements: Sequence>(
    _ elements: Elements, _ append: (Elements.Element, inout [UInt8]) -> Void
  ) {
    self.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { self.append(UInt8(ascii: ",")) }
      isFirst = false
      append(element, &self)
    }
    self.append(UInt8(ascii: "]"))
  }

  mutating func appendComma() { append(UInt8(ascii: ",")) }

  /// Appends a comma and the name of a member, which needs no escapes, with its colon.
  mutating func appendName(_ name: String) {
    append(contentsOf: ",\"".utf8)
    append(contentsOf: name.utf8)
    append(contentsOf: "\":".utf8)
  }

  /// Appends a reference as a string; its characters need no escapes.
  mutating func appendQuoted(_ reference: Reference) {
    append(UInt8(ascii: "\""))
    append(contentsOf: reference.text.utf8)
    append(UInt8(ascii: "\""))
  }

  fileprivate mutating func appendMark(_ mark: StoredJSON.Mark) {
    append(contentsOf: "{\"".utf8)
    append(contentsOf: mark.rawValue.utf8)
    append(contentsOf: "\":".utf8)
  }
}
