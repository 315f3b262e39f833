extension Value {
  /// JSON text by which arrays and objects are ordered: the same for equal values, which the text that is sent is not.
  /// Members of objects come in the order of their names, and a zero has no sign.
  ///
  /// Behind the text comes a byte for each number and string that distinguishes an integer from a double, 0.0 from
  /// -0.0, and a string from a reference, so that the bytes of two values are the same only where the values are equal.
  /// O(n), and the sorting of names.
  var orderingText: [UInt8] {
    var text: [UInt8] = []
    var kinds: [UInt8] = []
    appendOrderingText(to: &text, kinds: &kinds)
    // No JSON text has this byte, and of two texts neither begins with the other: so the kinds are looked at last.
    text.append(0)
    return text + kinds
  }

  private func appendOrderingText(to text: inout [UInt8], kinds: inout [UInt8]) {
    switch self {
    case .null, .bool: appendJSON(to: &text)
    case .integer, .string:
      appendJSON(to: &text)
      kinds.append(0)
    case .reference:
      appendJSON(to: &text)
      kinds.append(1)
    case .number(let number), .rounded(let number):
      Value.number(number == 0 ? 0 : number).appendJSON(to: &text)
      kinds.append(number == 0 && number.sign == .minus ? 2 : 1)
    case .array(let elements): Self.appendOrderingText(of: elements, to: &text, kinds: &kinds)
    case .members(let list): Self.appendOrderingText(of: list, to: &text, kinds: &kinds)
    case .object(let object):
      var separator = UInt8(ascii: "{")
      if object.members.isEmpty { text.append(separator) }
      for (name, value) in object.members.sorted(by: { $0.key.byteOrdering(to: $1.key) == .ascending }) {
        text.append(separator)
        separator = UInt8(ascii: ",")
        text.appendJSONString(name)
        text.append(UInt8(ascii: ":"))
        value.appendOrderingText(to: &text, kinds: &kinds)
      }
      text.append(UInt8(ascii: "}"))
    }
  }

  private static func appendOrderingText(
    of elements: some Sequence<Value>, to text: inout [UInt8], kinds: inout [UInt8]
  ) {
    text.append(UInt8(ascii: "["))
    var isFirst = true
    for element in elements {
      if !isFirst { text.append(UInt8(ascii: ",")) }
      isFirst = false
      element.appendOrderingText(to: &text, kinds: &kinds)
    }
    text.append(UInt8(ascii: "]"))
  }
}
