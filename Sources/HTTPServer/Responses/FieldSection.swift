package import HTTPTypes
import Support

/// The fields of a response (RFC 9110 §6.3), as the bytes of their lines.
///
/// All fields together take one allocation, and libmicrohttpd gets all at once. `HTTPFields` has several references for
/// each field, and searches its names with a dictionary.
package struct FieldSection: Hashable, Sendable, ExpressibleByDictionaryLiteral {
  /// The byte that stands, twice, for a line break, which libmicrohttpd does not accept. No name and no value contains
  /// it (RFC 9110 §5.5).
  static let mark: UInt8 = 1
  /// The number of bytes that suffice for most responses.
  private static let usualByteCount = 192

  /// The lines: for each field its name, a colon and a space, its value, and two marks.
  private(set) var bytes: [UInt8] = []

  /// Creates a section without fields.
  package init() {}

  /// Creates a section with fields in order.
  package init(dictionaryLiteral fields: (HTTPField.Name, String)...) {
    for (name, value) in fields { append(name, value) }
  }

  // MARK: Adding

  /// Appends a field, after those of the same name. A byte that no value can have becomes a space, and so does a tab,
  /// which libmicrohttpd does not accept. A field without a value is left out, as are those that only the server sets.
  package mutating func append(_ name: HTTPField.Name, _ value: String) {
    guard !value.isEmpty else { return }
    append(name) { bytes in
      let start = bytes.count
      bytes.append(utf8Of: value)
      for index in start..<bytes.count where bytes[index] < 0x20 || bytes[index] == 0x7F { bytes[index] = 0x20 }
    }
  }

  /// Appends a field whose value `write` appends to the bytes: at least one byte, and only such as a value can have.
  package mutating func append(_ name: HTTPField.Name, writing write: (inout [UInt8]) -> Void) {
    guard !Self.isOurs(name) else { return }
    if bytes.isEmpty { bytes.reserveCapacity(Self.usualByteCount) }
    bytes.append(utf8Of: name.rawName)
    bytes.append(UInt8(ascii: ":"))
    bytes.append(0x20)
    write(&bytes)
    bytes.append(Self.mark)
    bytes.append(Self.mark)
  }

  /// Appends the fields of another section. The quickest way to append a field that always has the same value.
  package mutating func append(contentsOf other: FieldSection) {
    if bytes.isEmpty { bytes.reserveCapacity(Self.usualByteCount) }
    bytes += other.bytes
  }

  /// Returns true for the fields that only the server sets. Most names differ from theirs in their length already.
  private static func isOurs(_ name: HTTPField.Name) -> Bool {
    switch name.rawName.utf8.count {
    case 4: name == .date
    case 10: name == .connection
    case 14: name == .contentLength
    case 17: name == .transferEncoding
    default: false
    }
  }

  // MARK: Searching

  /// Returns true if there is a field of a name. The search begins with the last field: the server asks each response
  /// for one that it appends near the end.
  package func contains(_ name: HTTPField.Name) -> Bool {
    var name = name.canonicalName
    return name.withUTF8 { name in
      bytes.withUnsafeBytes { bytes in
        var end = bytes.count
        while end > 0 {
          // A line ends with two marks.
          var start = end - 2
          while start > 0, bytes[start - 1] != Self.mark { start -= 1 }
          if Self.isField(name, at: start, in: bytes) { return true }
          end = start
        }
        return false
      }
    }
  }

  /// The value of the fields of a name, joined by ", " if there are several (RFC 9110 §5.3); nil if there is none.
  /// Setting it replaces all of them by one at the end.
  package subscript(name: HTTPField.Name) -> String? {
    get {
      var value: String?
      var position = 0
      while let line = line(of: name, from: position) {
        let text = String(decoding: bytes[line.value], as: UTF8.self)
        value = value.map { "\($0), \(text)" } ?? text
        position = line.all.upperBound
      }
      return value
    }
    set {
      while let line = line(of: name, from: 0) { bytes.removeSubrange(line.all) }
      if let newValue { append(name, newValue) }
    }
  }

  /// The fields in order.
  package var lines: [(name: String, value: String)] {
    var lines: [(name: String, value: String)] = []
    var position = 0
    while let line = line(from: position) {
      lines.append(
        (String(decoding: bytes[line.name], as: UTF8.self), String(decoding: bytes[line.value], as: UTF8.self)))
      position = line.all.upperBound
    }
    return lines
  }

  /// The size of the fields in bytes.
  package var byteCount: Int { bytes.count }

  /// The parts of a line, as ranges of `bytes`.
  private struct Line {
    let name: Range<Int>
    let value: Range<Int>
    /// The whole line, with its marks.
    var all: Range<Int> { name.lowerBound..<value.upperBound + 2 }
  }

  /// Returns the line that begins at a position; nil at the end.
  private func line(from position: Int) -> Line? {
    bytes.withUnsafeBufferPointer { bytes in
      guard let colon = bytes[position...].firstIndex(of: UInt8(ascii: ":")),
        let end = bytes[colon...].firstIndex(of: Self.mark)
      else { return nil }
      return Line(name: position..<colon, value: colon + 2..<end)
    }
  }

  /// Returns the first line with a field of a name, beginning with the line at a position.
  private func line(of name: HTTPField.Name, from position: Int) -> Line? {
    var name = name.canonicalName
    return name.withUTF8 { name in
      bytes.withUnsafeBytes { bytes in
        var start = position
        while let end = bytes.offset(of: Self.mark, from: start) {
          let colon = start + name.count
          if Self.isField(name, at: start, in: bytes) { return Line(name: start..<colon, value: colon + 2..<end) }
          start = end + 2
        }
        return nil
      }
    }
  }

  /// Returns true if the line at a position has a name, given in small letters.
  private static func isField(
    _ name: UnsafeBufferPointer<UInt8>, at start: Int, in bytes: UnsafeRawBufferPointer
  ) -> Bool {
    let colon = start + name.count
    return colon < bytes.count && bytes[colon] == UInt8(ascii: ":")
      && name.indices.allSatisfy { bytes[start + $0].lowercased == name[$0] }
  }
}

extension [UInt8] {
  /// Appends the UTF-8 of a text: at once, which the view `utf8` is not.
  package mutating func append(utf8Of text: String) {
    var text = text
    text.withUTF8 { append(contentsOf: $0) }
  }
}

extension UInt8 {
  /// The small letter if the byte is a capital one of ASCII.
  fileprivate var lowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }
}
