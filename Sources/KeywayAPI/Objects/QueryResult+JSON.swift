import KeyValueModel

extension QueryResult {
  /// Appends `,"sections":[…]`, what the window has of each section; nothing where the query has none.
  func appendSections(to bytes: inout [UInt8]) {
    guard let sections = windowSections else { return }
    bytes.append(contentsOf: ",\"sections\":[".utf8)
    for (index, section) in sections.enumerated() {
      bytes.append(contentsOf: index > 0 ? ",{\"name\":".utf8 : "{\"name\":".utf8)
      section.name.appendJSON(to: &bytes)
      bytes.append(contentsOf: ",\"count\":\(section.count)}".utf8)
    }
    bytes.append(UInt8(ascii: "]"))
  }
}
