import KeyValueModel

extension QueryResult {
  /// Appends `,"sections":[…]`, what the window has of each section, with what all rows of it come to; of a query
  /// without sections `,"aggregates":{…}`, what all rows come to. Nothing where the query asks for neither.
  func appendSummary(to bytes: inout [UInt8]) {
    query.appendSummary(sections: windowSections, aggregates: aggregates, to: &bytes)
  }
}

extension Query {
  /// Appends `,"sections":[…]` where there are sections, `,"aggregates":{…}` where there are none and something is
  /// aggregated.
  func appendSummary(sections: [QueryResult.WindowSection]?, aggregates values: [Value], to bytes: inout [UInt8]) {
    guard let sections else { return appendAggregates(values, to: &bytes) }
    bytes.append(contentsOf: ",\"sections\":[".utf8)
    for (index, section) in sections.enumerated() {
      bytes.append(contentsOf: index > 0 ? ",{\"name\":".utf8 : "{\"name\":".utf8)
      section.name.appendJSON(to: &bytes)
      bytes.append(contentsOf: ",\"count\":\(section.count)".utf8)
      appendAggregates(section.aggregates, to: &bytes)
      bytes.append(UInt8(ascii: "}"))
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Appends `,"aggregates":{…}`, each under its text; nothing where the query has none.
  private func appendAggregates(_ values: [Value], to bytes: inout [UInt8]) {
    guard !aggregates.isEmpty else { return }
    bytes.append(contentsOf: ",\"aggregates\":{".utf8)
    for (index, (aggregate, value)) in zip(aggregates, values).enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.appendJSONString(aggregate.text)
      bytes.append(UInt8(ascii: ":"))
      value.appendJSON(to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }
}
