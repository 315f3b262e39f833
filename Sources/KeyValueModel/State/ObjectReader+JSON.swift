extension ObjectReader {
  /// Appends an object as the specification has it, section 3: `@ref`, `@revision`, `@lifetime` where it
  /// has one, and all keys in the schema's order.
  /// Gives the last revision that changed anything of it, which is its `ETag`.
  ///
  /// Once there are more than `limit` bytes it stops, soon after; what it has appended is then no JSON.
  @discardableResult
  public func appendJSON(
    of reference: Reference, _ record: ObjectRecord, to bytes: inout [UInt8], upTo limit: Int = .max
  ) -> Revision {
    var latest = LatestRevision(record.revision)
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: reference.text.utf8)
    bytes.append(contentsOf: "\",\"@revision\":".utf8)
    bytes.appendDecimal(record.revision)
    record.lease?.appendMember(to: &bytes)
    let layout = record.entity.layout
    for (key, column) in layout.columns.enumerated() {
      bytes.append(contentsOf: layout.names[Int(column.nameStart)..<Int(column.nameEnd)])
      if column.storage >= 0 {
        record.values.appendJSON(at: Int(column.storage), to: &bytes, upTo: limit)
      } else {
        value(of: record, reference, key: key, latest: &latest).appendJSON(to: &bytes, upTo: limit)
      }
      if bytes.count > limit { return latest.revision }
    }
    bytes.append(UInt8(ascii: "}"))
    return latest.revision
  }
}
