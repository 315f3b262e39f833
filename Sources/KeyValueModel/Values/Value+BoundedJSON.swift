extension Value {
  /// Appends the value as `appendJSON(to:)` does, until there are more than `limit` bytes: then it stops, soon after,
  /// and what it has appended is no JSON. Gives whether it is whole.
  ///
  /// A list that reading has made may hold one value many times without taking room for it, and is much larger as JSON.
  @discardableResult
  package func appendJSON(to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    switch self {
    case .array(let elements): return Self.append(elements, to: &bytes, upTo: limit)
    case .members(let list): return Self.append(list, to: &bytes, upTo: limit)
    case .string(var text) where text.utf8.count > limit - bytes.count:
      // So much of it is too much already.
      let count = max(0, limit - bytes.count) + 1
      text.withUTF8 { bytes.append(contentsOf: $0.prefix(count)) }
      return false
    case .object(let object): return Self.append(object, to: &bytes, upTo: limit)
    default:
      appendJSON(to: &bytes)
      return bytes.count <= limit
    }
  }

  private static func append(_ object: JSONObject, to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    var isWhole = true
    bytes.appendObject(object.members) { value, bytes in
      isWhole = isWhole && value.appendJSON(to: &bytes, upTo: limit)
    }
    return isWhole && bytes.count <= limit
  }

  private static func append(_ elements: some Sequence<Value>, to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    bytes.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      guard element.appendJSON(to: &bytes, upTo: limit) else { return false }
    }
    bytes.append(UInt8(ascii: "]"))
    return bytes.count <= limit
  }
}
