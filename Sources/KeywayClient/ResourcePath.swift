/// The paths of the server's resources, from what people type.
package enum ResourcePath {
  /// The path of what `text` names: a path as it stands when it begins with a slash, else something under
  /// `/v1/objects` (`Account/1`, `Account?limit=5`); with a key path, of that property of it.
  package static func path(_ text: String, keyPath: String? = nil) -> String {
    var path = encoded(text.hasPrefix("/") ? text : "/v1/objects/" + text, also: "/?&=")
    guard let keyPath else { return path }
    let query = path.firstIndex(of: "?") ?? path.endIndex
    path.insert(contentsOf: "/" + encoded(keyPath), at: query)
    return path
  }

  /// A path with more parameters behind it; nil values are left out.
  package static func adding(_ parameters: [(name: String, value: String?)], to path: String) -> String {
    var path = path
    for case (let name, let value?) in parameters {
      path += path.contains("?") ? "&" : "?"
      path += encoded(name) + "=" + encoded(value)
    }
    return path
  }

  /// Text with everything percent-encoded that RFC 3986 does not let stand in a path segment or a parameter, but for the
  /// characters in `also`. A `%` that two hexadecimal digits follow stays where `also` is given: it is encoded already.
  package static func encoded(_ text: String, also: String = "") -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    let plain = Set(("-._~@:,!$'()*;" + also).utf8)
    let bytes = Array(text.utf8)
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count)
    for (index, byte) in bytes.enumerated() {
      if isAlphanumeric(byte) || plain.contains(byte) || (!also.isEmpty && isEscape(bytes[index...])) {
        result.append(byte)
      } else {
        result.append(UInt8(ascii: "%"))
        result.append(digits[Int(byte >> 4)])
        result.append(digits[Int(byte & 15)])
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func isEscape(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard bytes.count > 2, bytes.first == UInt8(ascii: "%") else { return false }
    return bytes.dropFirst().prefix(2).allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0 | 0x20)
    }
  }
}
