import Store

/// The row of `keyway.head`: what the journal is, and how far it reaches.
struct PostgresHead: Equatable, Sendable {
  var epoch: String
  /// The digest of the schema's text.
  var schema: UInt64
  var base: UInt64
  var baseDigest: JournalDigest
  var last: UInt64
  var digest: JournalDigest
  /// The address of the node that appended last.
  var pen: String
  /// How often the revocations were changed.
  var revoked: UInt64

  /// The head of a journal without records.
  init(epoch: String, schema: UInt64, pen: String) {
    (self.epoch, self.schema, self.pen) = (epoch, schema, pen)
    (base, last, revoked) = (0, 0, 0)
    (baseDigest, digest) = (.start, .start)
  }

  /// The head of which this is known.
  init(_ position: JournalPosition) {
    self.init(epoch: position.identity.epoch, schema: Self.digest(ofSchema: position.identity.schema), pen: "")
    (base, baseDigest) = (position.bounds.base, position.baseDigest)
    (last, digest) = (position.bounds.last, position.digest)
  }

  /// Reads `PostgresLayout.headColumns`, which begin with the first column of a row.
  init(_ result: PostgresResult, row: Int = 0) throws(PostgresError) {
    let layout = try result.integer(row, 0)
    guard layout == PostgresLayout.version else {
      throw .refused(code: "", "its tables are of version \(layout), and this program knows \(PostgresLayout.version)")
    }
    epoch = result.text(row, 1)
    schema = try result.bits(row, 2)
    base = try result.bits(row, 3)
    baseDigest = JournalDigest(value: try result.bits(row, 4))
    last = try result.bits(row, 5)
    digest = JournalDigest(value: try result.bits(row, 6))
    pen = result.text(row, 7)
    revoked = try result.bits(row, 8)
  }

  private static let statement = PostgresStatement(
    name: "keyway_head", text: "SELECT \(PostgresLayout.headColumns) FROM keyway.head h")

  /// The head that a database has.
  static func read(_ connection: PostgresConnection, within patience: Duration) throws(PostgresError) -> PostgresHead {
    let result = try connection.execute(statement, [], within: patience)
    guard result.count == 1 else { throw .unexpected("the head is missing") }
    return try PostgresHead(result)
  }

  /// The digest by which the text of a schema is known.
  static func digest(ofSchema text: String) -> UInt64 { JournalDigest.start.linked(to: Array(text.utf8)).value }
}
