import HTTPTypes

extension HTTPFields {
  /// Says that the answer depends on a field of the request (`Vary`, RFC 9110 §12.5.5), beside those that it names
  /// already.
  mutating func vary(by field: HTTPField.Name) {
    self[.vary] = self[.vary].map { "\($0), \(field.rawName)" } ?? field.rawName
  }
}
