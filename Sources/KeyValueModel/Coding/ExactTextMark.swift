/// The names that mark, in an exact text, what JSON has no form for: such a value is an object with this one member.
enum ExactTextMark: String {
  /// The name of an object, where a string would be taken for text: `{"@@reference":"Account/1"}`.
  case reference = "@@reference"
  /// A double that is not finite, which no request can hold but a caller in this process can: `{"@@number":"inf"}`.
  case number = "@@number"
  /// A list of members, behind whether it is ordered: `{"@@members":[true,[1,2]]}`.
  case members = "@@members"
  /// An object whose own first member has a name that looks like a mark: `{"@@object":{"@@number":1}}`.
  case object = "@@object"
}

extension String {
  /// Whether an object whose first member has this name could be taken for a marked value.
  var hasExactTextMark: Bool {
    var bytes = utf8.makeIterator()
    return bytes.next() == UInt8(ascii: "@") && bytes.next() == UInt8(ascii: "@")
  }
}
