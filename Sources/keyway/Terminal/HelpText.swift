/// The help of a command, broken into lines that fit a terminal.
///
/// swift-argument-parser breaks every line at the width that it is given, commands among them, which nobody can copy
/// then. So it is given none, and the lines are broken here.
enum HelpText {
  /// More than any line has.
  static let unlimitedColumns = 100_000
  /// The narrowest help.
  static let fewestColumns = 40
  /// Where the descriptions of arguments begin.
  private static let descriptionColumn = 26

  /// Breaks the lines of a help that was made without a width. The usage and paragraphs of examples stay as they are.
  static func wrapped(_ help: String, columns: Int) -> String {
    let columns = max(columns, fewestColumns)
    let paragraphs = help.split(separator: "\n\n", omittingEmptySubsequences: false)
    return paragraphs.map { paragraph in
      let lines = paragraph.split(separator: "\n", omittingEmptySubsequences: false)
      if lines.allSatisfy(isCommand) || paragraph.lowercased().hasPrefix("usage: ") { return String(paragraph) }
      let isList = lines.contains { $0.hasPrefix("  ") }
      let whole = isList ? lines : [Substring(lines.joined(separator: " "))]
      return whole.map { broken($0, columns: columns, indent: isList ? descriptionColumn : 0) }.joined(separator: "\n")
    }.joined(separator: "\n\n")
  }

  /// True for an example: a line for a shell.
  private static func isCommand(_ line: Substring) -> Bool { line.prefixMatch(of: #/(cd \S+ && )?keyway /#) != nil }

  /// Returns the line with breaks between words, and with so many spaces at the beginning of each further line.
  private static func broken(_ line: Substring, columns: Int, indent: Int) -> String {
    guard line.count > columns else { return String(line) }
    var lines: [String] = []
    var current = String(line.prefix(indent))
    var isEmpty = true
    for word in line.dropFirst(indent).split(separator: " ") {
      if !isEmpty, current.count + 1 + word.count > columns {
        lines.append(current)
        current = String(repeating: " ", count: indent)
        isEmpty = true
      }
      current += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return (lines + [current]).joined(separator: "\n")
  }
}
