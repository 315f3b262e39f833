/// One record of a CSV file.
struct CSVRecord: Hashable, Sendable {
  /// The line of the file on which it begins, from 1; a record with line breaks in quotation marks covers several.
  var line: Int
  var fields: [CSVField]
}

/// One field of a record.
struct CSVField: Hashable, Sendable {
  /// The text, without the quotation marks around it.
  var text: String
  /// Whether it stood in quotation marks: `""` is an empty text, nothing at all is the absence of a value.
  var isQuoted: Bool
}
