extension Value {
  /// Appends the value as `appendJSON(to:)` does, until there are more than `limit` bytes: then it stops, soon after,
  /// and what it has appended is no JSON. Gives whether it is whole.
  ///
  /// A list that reading has made may hold one value many times without taking room for it, and is much larger as JSON.
  /// A value that an object holds as it is is appended as a whole: it is as long as what was once sent.
  @discardableResult
  package func appendJSON(to bytes: inout [UInt8], upTo limit: Int) -> Bool {
    switch self {
    case .array(let elements): return Self.append(elements, to: &bytes, upTo: limit)
    case .members(let list): return Self.append(list, to: &bytes, upTo: limit)
    default:
      appendJSON(to: &bytes)
      return bytes.count <= limit
    }
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
