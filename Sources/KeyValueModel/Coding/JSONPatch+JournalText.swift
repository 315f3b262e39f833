/// The operations of a JSON patch in a journal: `["add","/name",1]`, `["move","/from","/to"]`.
extension JSONPatch.Operation {
  /// Appends the text.
  func appendJournalText(to bytes: inout [UInt8]) {
    switch self {
    case .add(let path, let value): Self.append("add", path, value, to: &bytes)
    case .remove(let path): Self.append("remove", path, to: &bytes)
    case .replace(let path, let value): Self.append("replace", path, value, to: &bytes)
    case .move(let source, let path): Self.append("move", source, path, to: &bytes)
    case .copy(let source, let path): Self.append("copy", source, path, to: &bytes)
    case .test(let path, let value): Self.append("test", path, value, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private static func append(_ name: String, _ pointers: JSONPointer..., to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "["))
    bytes.appendJSONString(name)
    for pointer in pointers { bytes.appendOperand(pointer.text) }
  }

  private static func append(_ name: String, _ path: JSONPointer, _ value: Value, to bytes: inout [UInt8]) {
    append(name, path, to: &bytes)
    bytes.appendComma()
    value.appendStoredText(.exact, to: &bytes)
  }
}

extension JSONParser {
  /// One operation of a JSON patch.
  mutating func parsePatchOperation() throws(JSONError) -> JSONPatch.Operation {
    try expect(UInt8(ascii: "["))
    let start = position
    let name = try parseQuoted()
    let pointer = try parsePointer()
    let operation: JSONPatch.Operation
    switch name {
    case "add": operation = .add(pointer, try parseOperand())
    case "remove": operation = .remove(pointer)
    case "replace": operation = .replace(pointer, try parseOperand())
    case "move":
      let path = try parsePointer()
      guard !pointer.isProperPrefix(of: path) else { throw error("a value cannot be moved into itself") }
      operation = .move(from: pointer, to: path)
    case "copy": operation = .copy(from: pointer, to: try parsePointer())
    case "test": operation = .test(pointer, try parseOperand())
    default: throw JSONError(reason: "a patch has no operation '\(name)'", offset: start)
    }
    try expect(UInt8(ascii: "]"))
    return operation
  }

  private mutating func parsePointer() throws(JSONError) -> JSONPointer {
    try expect(UInt8(ascii: ","))
    let start = position
    let text = try parseQuoted()
    guard let pointer = JSONPointer(text) else {
      throw JSONError(reason: "'\(text)' is no JSON pointer", offset: start)
    }
    return pointer
  }

  private mutating func parseOperand() throws(JSONError) -> Value {
    try expect(UInt8(ascii: ","))
    return try parseValue()
  }
}
