/// Where a file is not CSV, and why.
struct CSVError: Error, Hashable, Sendable {
  /// The line of the file, from 1.
  var line: Int
  /// What is wrong, as a clause.
  var reason: String
}
