/// Why an import stopped: the place in the file, and what is wrong there.
struct ImportError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The file as it was named.
  var file: String
  /// The line, from 1; 0 where the file as a whole is meant.
  var line: Int
  /// What is wrong.
  var reason: String

  /// `stocks.csv:17: price is no number: n/a`.
  var description: String { line == 0 ? "\(file): \(reason)" : "\(file):\(line): \(reason)" }
}
