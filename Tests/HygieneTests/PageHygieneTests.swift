import Testing

/// Checks README.md, the files for GitHub and the pages of the documentation. A failure lists the places, one a line.
@Suite("The pages")
struct PageHygieneTests {
  private let tree: SourceTree

  init() throws { tree = try SourceTree.package.get() }

  @Test("Text and code keep to 120 columns; tables and the output of programs may be wider")
  func columns() {
    let places = tree.pages.flatMap { page in
      var fence: Substring?
      return page.lines.indices.compactMap { index -> String? in
        let line = page.lines[index]
        if line.hasPrefix("```") {
          fence = fence == nil ? line.dropFirst(3) : nil
          return nil
        }
        let isOutput = fence == "console" || fence == "" || fence == "json"
        let isTable = fence == nil && line.hasPrefix("|")
        guard !isOutput, !isTable, line.isLonger(than: HouseRules.columns) else { return nil }
        return page.place(index)
      }
    }
    expectNone(places)
  }

  @Test("A sentence says who acts")
  func words() {
    expectNone(tree.pages.flatMap(\.avoidedWords))
  }

  @Test("A page says that a thing is not another")
  func denials() {
    expectNone(tree.pages.flatMap { page in page.places(Prose(page: page.lines).denials(allowingThere: true)) })
  }

  @Test("A file or folder that a page names exists")
  func files() {
    let places = tree.pages.flatMap { page in
      page.lines.indices.flatMap { index in
        page.lines[index].codeSpans.filter { !exists($0) }.map { "\(page.place(index)): there is no \($0)" }
      }
    }
    expectNone(places)
  }

  @Test("A page that a page refers to exists")
  func references() {
    let names = Set(tree.pages.map(\.name))
    let places = tree.pages.flatMap { page in
      page.lines.indices.flatMap { index in
        page.lines[index].split(separator: "<doc:", omittingEmptySubsequences: false).dropFirst()
          .map { $0.prefix { $0 != ">" } }
          .filter { !names.contains(String($0.prefix { $0 != "#" })) }
          .map { "\(page.place(index)): there is no page \($0)" }
      }
    }
    expectNone(places)
  }

  @Test("A link in a page leads to a file of the package, or to another site")
  func links() {
    let places = tree.pages.flatMap { page in
      var isCode = false
      return page.lines.indices.flatMap { index -> [String] in
        if page.lines[index].hasPrefix("```") { isCode.toggle() }
        guard !isCode else { return [] }
        return page.lines[index].linkTargets.filter { !leads($0, from: page.path) }
          .map { "\(page.place(index)): there is no \($0)" }
      }
    }
    expectNone(places)
  }

  /// Returns true if the target of a link is on another site, is a heading, or exists, relative to the page's folder. A
  /// page of a DocC catalog names its images without their folder and extension.
  private func leads(_ target: Substring, from path: String) -> Bool {
    if target.contains("://") || target.hasPrefix("#") { return true }
    var parts = Array(path.split(separator: "/").dropLast())
    for part in target.prefix(while: { $0 != "#" }).split(separator: "/") {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    let image = parts.dropLast() + ["Resources", "\(target).png"]
    return tree.paths.contains(parts.joined(separator: "/"))
      || path.contains(".docc/") && tree.paths.contains(image.joined(separator: "/"))
  }

  /// Returns true if a text in code is not the name of a file, or is the whole path or the end of one that exists.
  private func exists(_ text: Substring) -> Bool {
    let folders = ["Sources/", "Tests/", "Config/", ".ci/", ".github/"]
    guard text.hasSuffix(".swift") || folders.contains(where: text.hasPrefix), !text.contains(" ") else { return true }
    let path = text.hasSuffix("/") ? text.dropLast() : text
    guard !path.contains("*"), !path.contains("{") else { return true }
    return tree.paths.contains { $0 == path || $0.hasSuffix("/\(path)") }
  }
}
