import KeyValueModel

/// The pages of a fetch as the one JSON text that they are parts of: `{"revision":…,"count":…,"objects":[…]}`.
struct PagedJSON: Sendable {
  private var isFirst = true
  private var isEmpty = true

  /// What the next page adds to the text; the last page closes it, with a line end.
  mutating func text(for page: FetchPage) -> String {
    var text = ""
    if isFirst {
      text = "{" + members(of: page) { Self.head.contains($0) } + ",\"objects\":["
      isFirst = false
    }
    for object in page.objects {
      if !isEmpty { text += "," }
      isEmpty = false
      text += object.json
    }
    guard page.next == nil else { return text }
    let rest = members(of: page) { !Self.head.contains($0) }
    return text + "]" + (rest.isEmpty ? "" : "," + rest) + "}\n"
  }

  /// The members that stand before the objects, as a server writes them; all others stand behind.
  private static let head: Set<String> = ["revision", "count", "total", "failed"]

  private func members(of page: FetchPage, where isIncluded: (String) -> Bool) -> String {
    page.others.members.filter { isIncluded($0.key) }.map { Value.string($0.key).json + ":" + $0.value.json }
      .joined(separator: ",")
  }
}
