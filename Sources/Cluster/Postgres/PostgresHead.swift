import Store

/// The row of `keyway.head`: the identity of the journal, and its extent.
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
  /// The number of changes to the revocations.
  var revoked: UInt64

  /// Creates the head of a journal whose position is known; `pen` is empty and `revoked` is 0.
  init(_ position: JournalPosition) {
    (epoch, schema) = (position.identity.epoch, Self.digest(ofSchema: position.identity.schema))
    (base, baseDigest) = (position.bounds.base, position.baseDigest)
    (last, digest) = (position.bounds.last, position.digest)
    (pen, revoked) = ("", 0)
  }

  /// Reads `PostgresLayout.headColumns`, which start at the first column of the first row.
  init(_ result: PostgresResult) throws(PostgresError) {
    let layout = try result.integer(0, 0)
    guard layout == PostgresLayout.version else {
      throw .refused(
        code: "", "its tables have version \(layout), and this program supports version \(PostgresLayout.version)")
    }
    epoch = result.text(0, 1)
    schema = try result.bits(0, 2)
    base = try result.bits(0, 3)
    baseDigest = JournalDigest(value: try result.bits(0, 4))
    last = try result.bits(0, 5)
    digest = JournalDigest(value: try result.bits(0, 6))
    pen = result.text(0, 7)
    revoked = try result.bits(0, 8)
  }

  private static let statement = PostgresStatement(
    name: "keyway_head", text: "SELECT \(PostgresLayout.headColumns) FROM keyway.head h")

  /// Reads the head from a database.
  static func read(_ connection: PostgresConnection, within patience: Duration) throws(PostgresError) -> PostgresHead {
    let result = try connection.execute(statement, [], within: patience)
    guard result.count == 1 else { throw .unexpected("the head is missing") }
    return try PostgresHead(result)
  }

  /// Returns the digest that identifies the text of a schema.
  static func digest(ofSchema text: String) -> UInt64 { JournalDigest.start.linked(to: Array(text.utf8)).value }
}

/// The result of one query: the head, and the records after a revision.
struct FoundRecords {
  let head: PostgresHead
  /// The digest at that revision.
  let digest: JournalDigest
  /// The records with their digests, as the database has them.
  let entries: [(record: JournalRecord, digest: JournalDigest)]

  /// Selects the head, and the records after a revision with the digest that they follow, in one statement: at least
  /// one row, in which `revision` is null if there are no records. Returns at most `$2` records, and none after those
  /// before have `$3` bytes.
  private static let statement = PostgresStatement(
    name: "keyway_records",
    text: """
      SELECT \(PostgresLayout.headColumns),
        COALESCE((SELECT digest FROM keyway.records WHERE revision = $1), h.base_digest),
        r.revision, r.milliseconds, r.digest, r.body
      FROM keyway.head h LEFT JOIN (
        SELECT revision, milliseconds, digest, body,
          SUM(octet_length(body)) OVER (ORDER BY revision) - octet_length(body) AS bytes_before
        FROM (SELECT * FROM keyway.records WHERE revision > $1 ORDER BY revision LIMIT $2) AS found
      ) AS r ON r.bytes_before < $3
      ORDER BY r.revision
      """)

  /// Queries at most `limit` records, and none after those before have `bytes`; at least one record if there is any.
  init(
    after revision: UInt64, limit: Int, bytes: Int, _ connection: PostgresConnection, within patience: Duration
  ) throws(PostgresError) {
    let result = try connection.execute(
      Self.statement, [.bits(revision), .integer(Int64(max(1, limit))), .integer(Int64(max(1, bytes)))],
      within: patience)
    guard result.count > 0 else { throw .unexpected("the head is missing") }
    head = try PostgresHead(result)
    let first = PostgresLayout.headColumnCount
    digest = JournalDigest(value: try result.bits(0, first))
    var entries: [(record: JournalRecord, digest: JournalDigest)] = []
    for row in 0..<result.count where !result.isNull(row, first + 1) {
      let record = JournalRecord(
        revision: try result.bits(row, first + 1), milliseconds: try result.integer(row, first + 2),
        body: result.bytes(row, first + 4))
      entries.append((record, JournalDigest(value: try result.bits(row, first + 3))))
    }
    self.entries = entries
  }

  /// Checks that the records are the ones that were written after a revision, and returns the last one, or that
  /// revision, with its digest. Throws `damaged`.
  func check(after revision: UInt64) throws(JournalError) -> (revision: UInt64, digest: JournalDigest) {
    var (next, link) = (revision, digest)
    for (record, digest) in entries {
      next += 1
      link = link.linked(to: record)
      guard record.revision == next, link == digest else {
        throw .damaged(place: "the database, revision \(next)", reason: "it is not what was written")
      }
    }
    guard !entries.isEmpty || head.last <= revision else {
      throw .damaged(place: "the database, revision \(revision + 1)", reason: "it is missing")
    }
    return (next, link)
  }
}
