/// What is wrong in a file that is imported, and where.
struct ImportError: Error, Hashable, Sendable {
  /// The line, from 1; 0 is the file as a whole.
  var line = 0
  var reason: String
  /// What the command line could say to avoid it; nil where nothing is known.
  var hint: String?

  /// `stocks.csv:17: price is no number: n/a`.
  func text(file: String) -> String { line == 0 ? "\(file): \(reason)" : "\(file):\(line): \(reason)" }

  /// The same, and the hint on a line of its own.
  func textWithHint(file: String) -> String { text(file: file) + (hint.map { "\nhint: \($0)" } ?? "") }
}

/// A field or a line that cannot become a value, an id or an object; the caller knows the line.
struct InvalidCell: Error, Hashable, Sendable {
  var reason: String
  /// What the command line could say to avoid it; nil where nothing is known.
  var hint: String?

  /// Runs `body`, and gives what is wrong the number of its line.
  static func located<Result>(
    line: Int, _ body: () throws(InvalidCell) -> Result
  ) throws(ImportError) -> Result {
    do throws(InvalidCell) {
      return try body()
    } catch {
      throw ImportError(line: line, reason: error.reason, hint: error.hint)
    }
  }
}
