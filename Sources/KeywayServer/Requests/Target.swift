import Support

/// A parsed request target: path segments and query parameters, percent-decoded (RFC 3986 §2.1).
///
/// A malformed query is an error only for a resource that checks its parameters: `allowOnly` throws it.
package struct Target: Sendable {
  /// The decoded segments: `/v1/objects/Account/1` has four.
  package let segments: [String]
  /// The decoded parameters in order. Empty if the query is malformed.
  package let parameters: [(name: String, value: String)]
  /// The reason why the query is malformed, or nil if it is not.
  private let defect: String?

  /// Parses `text`. Throws `malformed-query` if an escape in the path is invalid or does not decode to UTF-8.
  package init(_ text: String) throws(Problem) {
    let (segments, query) = try Self.parts(of: text)
    self.segments = segments
    do throws(Problem) {
      parameters = try query.map(Self.parameters) ?? []
      defect = nil
    } catch {
      (parameters, defect) = ([], error.detail)
    }
  }

  /// Creates a target of decoded parts.
  init(segments: [String], parameters: [(name: String, value: String)]) {
    (self.segments, self.parameters, defect) = (segments, parameters, nil)
  }

  /// True if there are parameters, or a query that is malformed.
  var hasQuery: Bool { !parameters.isEmpty || defect != nil }

  /// The path as text.
  var path: String { segments.map { "/" + $0.percentEncoded }.joined() }

  /// The path and the query as text.
  var text: String {
    let query = parameters.map { "\($0.name.percentEncoded)=\($0.value.percentEncoded)" }
    return query.isEmpty ? path : "\(path)?\(query.joined(separator: "&"))"
  }

  private static func parts(of text: String) throws(Problem) -> (segments: [String], query: Substring?) {
    var text = authorityAndRest(of: text)?.rest ?? text[...]
    let (decoded, pathCount) = text.withUTF8 { text in
      let bytes = UnsafeRawBufferPointer(text)
      let count = bytes.offset(of: UInt8(ascii: "?")) ?? bytes.count
      let path = UnsafeRawBufferPointer(rebasing: bytes[..<count])
      return (Result { () throws(Problem) in try segments(of: path) }, count)
    }
    guard pathCount < text.utf8.count else { return (try decoded.get(), nil) }
    return (try decoded.get(), text[text.utf8.index(text.startIndex, offsetBy: pathCount + 1)...])
  }

  private static func segments(of path: UnsafeRawBufferPointer) throws(Problem) -> [String] {
    var segments: [String] = []
    segments.reserveCapacity(5)
    let isEscaped = path.offset(of: UInt8(ascii: "%")) != nil
    var start = min(1, path.count)
    while true {
      let end = path.offset(of: UInt8(ascii: "/"), from: start) ?? path.count
      let segment = UnsafeRawBufferPointer(rebasing: path[start..<end])
      segments.append(isEscaped ? try decoded(segment) : String(decoding: segment, as: UTF8.self))
      if end == path.count { return segments }
      start = end + 1
    }
  }

  /// Returns the authority of a target in absolute form, which replaces `Host` (RFC 9112 §3.2.2). Nil in origin form.
  package static func authority(of text: String) -> String? { authorityAndRest(of: text).map { String($0.authority) } }

  /// Returns a target as path and query (RFC 9112 §3.2.1), even if it was sent as a whole URL.
  package static func originForm(of text: String) -> String {
    authorityAndRest(of: text).map { String($0.rest) } ?? text
  }

  /// Returns true if a target in absolute form has the scheme `https`.
  static func isSecure(_ text: String) -> Bool { text.prefix(6).lowercased() == "https:" }

  private static func authorityAndRest(of text: String) -> (authority: Substring, rest: Substring)? {
    guard text.utf8.first != UInt8(ascii: "/"), let scheme = text.firstRange(of: "://") else { return nil }
    let authority = text[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }
    let rest = text[authority.endIndex...]
    return (authority, rest.first == "/" ? rest : "/" + rest)
  }

  private static func parameters(of query: Substring) throws(Problem) -> [(name: String, value: String)] {
    var parameters: [(name: String, value: String)] = []
    for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "="))
      let name = try decoded(pair[..<(equals ?? pair.endIndex)], plusIsSpace: true)
      let value = try equals.map { equals throws(Problem) in
        try decoded(pair[pair.index(after: equals)...], plusIsSpace: true)
      }
      guard !parameters.contains(where: { $0.name == name }) else {
        throw Problem(.malformedQuery, "the parameter '\(name)' appears twice")
      }
      parameters.append((name, value ?? ""))
    }
    return parameters
  }

  private static func decoded(_ utf8: some Collection<UInt8>, plusIsSpace: Bool = false) throws(Problem) -> String {
    guard utf8.contains(where: { $0 == UInt8(ascii: "%") || (plusIsSpace && $0 == UInt8(ascii: "+")) }) else {
      return String(decoding: utf8, as: UTF8.self)
    }
    var bytes: [UInt8] = []
    var rest = utf8[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "+"), plusIsSpace {
        bytes.append(UInt8(ascii: " "))
      } else if byte == UInt8(ascii: "%") {
        guard let high = rest.popFirst().flatMap(hexadecimal), let low = rest.popFirst().flatMap(hexadecimal) else {
          throw Problem(.malformedQuery, "'%' in the request target must be followed by two hexadecimal digits")
        }
        bytes.append(high << 4 | low)
      } else {
        bytes.append(byte)
      }
    }
    guard let decoded = String(validating: bytes, as: UTF8.self) else {
      throw Problem(.malformedQuery, "an escape in the request target is not UTF-8")
    }
    return decoded
  }

  private static func hexadecimal(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map(UInt8.init)
  }

  /// Throws `malformed-query` for a malformed query, and for the first parameter that is not in `names`.
  package func allowOnly(_ names: [String]) throws(Problem) {
    if let defect { throw Problem(.malformedQuery, defect) }
    for parameter in parameters where !names.contains(parameter.name) {
      let list = names.isEmpty ? "none" : names.joined(separator: ", ")
      throw Problem(.malformedQuery, "the parameter '\(parameter.name)' is unknown here; known parameters: \(list)")
    }
  }

  /// Returns the value of a parameter, or nil without it.
  package subscript(name: String) -> String? {
    parameters.first { $0.name == name }?.value
  }

  /// Returns the number of `limit=50`, within a range, or nil without the parameter.
  func limit(in range: ClosedRange<Int>) throws(Problem) -> Int? {
    guard let text = self["limit"] else { return nil }
    guard let limit = Int(text), range.contains(limit) else {
      let most = range.upperBound == .max ? "" : " to \(range.upperBound)"
      throw Problem(.malformedQuery, "limit must be a whole number from \(range.lowerBound)\(most)")
    }
    return limit
  }

  /// Returns the comma-separated items of a parameter, or nil without it.
  package func list(_ name: String) -> [String]? {
    self[name].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
  }
}

extension String {
  /// The text as a part of a target: unreserved characters are not escaped (RFC 3986 §2.3).
  fileprivate var percentEncoded: String {
    let unreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~".utf8
    return utf8.map { byte in
      unreserved.contains(byte) ? String(Unicode.Scalar(byte)) : "%" + byte.padded(to: 2, radix: 16).uppercased()
    }.joined()
  }
}
