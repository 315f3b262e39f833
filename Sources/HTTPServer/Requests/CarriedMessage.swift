package import HTTPTypes

/// A request as another one carries it in its body: what a request line, header lines and a body say otherwise.
package struct CarriedMessage: Sendable {
  /// The method.
  package let method: HTTPRequest.Method
  /// Path and query.
  package let target: String
  /// The fields in their order, with names in lower case.
  package let fields: [(name: String, value: String)]
  /// The content.
  package let body: [UInt8]

  /// A message of these parts; nil where they could not stand in a request (RFC 9112 §3, RFC 9110 §5): a method or a
  /// field's name that is no token, a target with a blank, a value with a line break.
  package init?(method: String, target: String, fields: [(name: String, value: String)], body: [UInt8]) {
    guard let method = HTTPRequest.Method(method), target.utf8.first == UInt8(ascii: "/"),
      target.utf8.allSatisfy(\.isTargetContent)
    else { return nil }
    var kept: [(name: String, value: String)] = []
    kept.reserveCapacity(fields.count)
    for field in fields {
      guard !field.name.isEmpty, field.name.utf8.allSatisfy({ ByteSet.token.contains($0) }),
        field.value.utf8.allSatisfy(\.isFieldContent)
      else { return nil }
      kept.append((field.name.lowercased(), field.value))
    }
    self.method = method
    self.target = target
    self.fields = kept
    self.body = body
  }

  /// The value of a field, several of one name joined by ", "; nil where there is none.
  subscript(name: HTTPField.Name) -> String? { self[name.canonicalName] }

  /// The same, by its name in lower case.
  package subscript(name: String) -> String? {
    var value: String?
    for field in fields where field.name == name {
      value = value.map { $0 + fieldSeparator(name) + field.value } ?? field.value
    }
    return value
  }

  /// The name that the client gave the request; nil where it gave none, none that is one, or several.
  var requestID: RequestID? {
    let name = RequestID.fieldName.lowercased()
    let values = fields.filter { $0.name == name }.map(\.value)
    guard values.count == 1 else { return nil }
    return Array(values[0].utf8).withUnsafeBytes { RequestID(sent: $0) }
  }
}
