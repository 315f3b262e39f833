/// A header or trailer line that has the form of one: a name, a colon right behind it, and a value (RFC 9112 §5).
struct FieldLine {
  let name: UnsafeMutableRawBufferPointer
  /// With the white space around it.
  let value: UnsafeMutableRawBufferPointer

  /// Takes a line that is not empty apart, or throws what is wrong with it.
  init(_ line: UnsafeMutableRawBufferPointer) throws(RequestDefect) {
    if line[0].isBlank { throw .foldedLine }
    let token = ByteSet.token
    var colon = 0
    while colon < line.count, token.contains(line[colon]) { colon += 1 }
    guard colon > 0, colon < line.count, line[colon] == UInt8(ascii: ":") else { throw .fieldName }
    for index in (colon + 1)..<line.count where !line[index].isFieldContent {
      throw line[index] == .carriageReturn ? .lineEnd : .fieldValue
    }
    name = line[..<colon].rebased
    value = line[(colon + 1)...].rebased
  }

  /// The value without the white space around it, after it was moved to the end of where it stands: libmicrohttpd skips
  /// the white space before a value, and takes what is behind it for a part of the value.
  func trimmedValue() -> UnsafeMutableRawBufferPointer {
    var start = 0
    var end = value.count
    while start < end, value[start].isBlank { start += 1 }
    while end > start, value[end - 1].isBlank { end -= 1 }
    let trailing = value.count - end
    guard trailing > 0 else { return value[start...].rebased }
    let content = value[start..<end].rebased
    let moved = value[(start + trailing)...].rebased
    UnsafeMutableRawBufferPointer(moved).copyMemory(from: UnsafeRawBufferPointer(content))
    for index in start..<(start + trailing) { value[index] = 0x20 }
    return moved
  }
}
