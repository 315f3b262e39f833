import Foundation

extension String {
  /// The text of a page in which other lines stand in the place of the table whose first line begins with `header`.
  func replacingTable(withHeader header: String, by table: [String]) -> String {
    var lines = components(separatedBy: "\n")
    guard let start = lines.firstIndex(where: { $0.hasPrefix(header) }) else { return self }
    lines.replaceSubrange(lines[start...].prefix { $0.hasPrefix("|") }.indices, with: table)
    return lines.joined(separator: "\n")
  }
}
