import TestKit

extension WireResponse {
  /// The body of a JSON response without the newline that it ends with; nil where it does not end with one.
  var jsonText: String? { text.hasSuffix("\n") ? String(text.dropLast()) : nil }
}
