/// One field of a record.
struct CSVField: Hashable, Sendable {
  /// The text, without the quotation marks around it.
  var text: String
  /// Whether it stood in quotation marks: `""` is an empty text, nothing at all is the absence of a value.
  var isQuoted: Bool
}
