import Support

extension Transaction {
  /// Appends what a feed of all commits has of this one, as a JSON object: the revision that it made, when that was (in
  /// milliseconds since 1970, written as a `date-time` of RFC 3339 in UTC), its writer, the `sub` of the identity that
  /// wrote it as `by`, and the operations.
  ///
  /// Operations are written as a transaction takes them over HTTP, and do the same when they are sent again: doubles
  /// keep a fraction or an exponent, and an object that was made in place names itself. Those that cannot be sent so
  /// have forms of their own, which are refused there: `put`, `patch` with a JSON Patch in `patch`, `mutateSet`,
  /// and `lifetime`, which stands behind the write that said it and names no stream.
  package func appendFeedText(revision: Revision, milliseconds: Int64, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"revision\":".utf8)
    bytes.appendDecimal(revision)
    bytes.appendName("time")
    bytes.appendJSONString(RFC3339.dateTime(milliseconds: milliseconds))
    if let writer {
      bytes.appendName("writer")
      bytes.appendJSONString(writer)
    }
    if let author {
      bytes.appendName("by")
      bytes.appendJSONString(author)
    }
    bytes.appendName("operations")
    bytes.appendList(operations) { $0.appendFeedText(to: &$1) }
    bytes.append(UInt8(ascii: "}"))
  }
}
