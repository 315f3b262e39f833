/// The names of the language's types, as values of `type` show them.
enum TypeNames {
  static let null = "null_type"
  static let bool = "bool"
  static let int = "int"
  static let uint = "uint"
  static let double = "double"
  static let string = "string"
  static let bytes = "bytes"
  static let timestamp = "google.protobuf.Timestamp"
  static let duration = "google.protobuf.Duration"
  static let list = "list"
  static let map = "map"
  static let type = "type"

  /// Those that are values by their own names.
  static let denotations: Set<String> = [
    null, bool, int, uint, double, string, bytes, timestamp, duration, list, map, type,
  ]
}
