/// One record of a CSV file.
struct CSVRecord: Hashable, Sendable {
  /// The line of the file on which it begins, from 1; a record with line breaks in quotation marks covers several.
  var line: Int
  /// The fields in order.
  var fields: [CSVField]
}
