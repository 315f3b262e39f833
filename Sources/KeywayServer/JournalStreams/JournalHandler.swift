import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `GET /v1/journal`: the committed transactions themselves, for services that follow everything.
struct JournalHandler: Sendable {
  let store: Store
  let streams: JournalStreams
  let readings: Readings
  let limits: RequestLimits

  /// The maximum number of records that are read at a time; `chunkBytes` is their maximum size in bytes.
  private static let chunkRecords = 512
  private static let chunkBytes = 1 << 20

  /// Responds with the journal as a stream.
  func open(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try context.checkParameters()
    let overflow = try target.overflow()
    if request.method == .head { return .response(Response(streamHead: .eventStream)) }
    let stream = try streams.open(
      target.cursor(of: request), overflow: overflow, for: request.client, in: store)
    return .stream(stream, fields: .eventStream)
  }

  /// Responds with the journal as lines, one for each transaction.
  func lines(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try context.checkParameters()
    let limit = try target.limit(in: 1...limits.journalRecords) ?? limits.journalRecords
    // This waits for the disk, and may read much.
    return try readings.response(to: request, isLong: true) { [self] budget throws(Problem) in
      try lines(target, limit, budget)
    }
  }

  private func lines(_ target: Target, _ limit: Int, _ budget: ReadingBudget) throws(Problem) -> Response {
    let present = store.snapshot.revision
    let cursor = target["since"]
    let base = store.journal.bounds.base
    let start: Revision
    switch Resumption(cursor: cursor, epoch: store.epoch, oldest: base, present: present) {
    case .fresh: start = base
    case .after(let revision): start = revision
    case .reset(let reason): throw unusableCursor(cursor, reason, base)
    }
    var bytes: [UInt8] = []
    var last = start
    if let error = try appendLines(to: &bytes, after: &last, through: present, limit, budget) {
      // Transactions that were read before the rest was compacted, or found to be damaged, make a response that is not
      // full.
      if bytes.isEmpty { throw problem(error, cursor ?? store.cursor(start).description) }
    }
    var fields: FieldSection = [.contentType: Negotiation.Form.lines.type]
    fields.append(.keywayCursor, store.cursor(last))
    return Response(status: .ok, fields: fields, body: bytes)
  }

  /// Appends the transactions after a revision, and sets that to the revision of the last of them. Returns the error
  /// that stopped the reading of the journal before its end; throws `overloaded`, and stops if the client has left.
  private func appendLines(
    to bytes: inout [UInt8], after last: inout Revision, through present: Revision, _ limit: Int,
    _ budget: ReadingBudget
  ) throws(Problem) -> JournalError? {
    var count = 0
    while count < limit, bytes.count < limits.journalBytes {
      do throws(JournalError) {
        let read = try appendChunk(to: &bytes, after: &last, through: present, limit - count)
        count += read.count
        if read.isLast { return nil }
      } catch {
        return error
      }
      budget.work.look()
      try budget.check()
      try budget.reserve(bytes)
    }
    return nil
  }

  /// Appends some transactions. Returns their number, and whether there is nothing more to append.
  private func appendChunk(
    to bytes: inout [UInt8], after last: inout Revision, through present: Revision, _ limit: Int
  ) throws(JournalError) -> (count: Int, isLast: Bool) {
    let records = try store.journal.records(
      after: last, through: present, limit: min(limit, Self.chunkRecords),
      bytes: min(limits.journalBytes - bytes.count, Self.chunkBytes))
    var count = 0
    for record in records {
      let end = bytes.count
      try record.appendFeedText(to: &bytes)
      bytes.append(UInt8(ascii: "\n"))
      if bytes.count > limits.journalBytes, end > 0 {
        bytes.removeSubrange(end...)
        return (count, true)
      }
      last = record.revision
      count += 1
    }
    return (count, records.isEmpty)
  }

  private func problem(_ error: JournalError, _ cursor: String?) -> Problem {
    switch error {
    case .compacted(let base): unusableCursor(cursor, .compacted, base)
    default: Problem(.storeUnavailable, "the journal cannot be read: \(store.journal.publicReason(error))")
    }
  }

  private func unusableCursor(_ cursor: String?, _ reason: Resumption.Reset, _ base: Revision) -> Problem {
    let fault =
      switch reason {
      case .compacted, .overflow: "the journal begins after \(store.cursor(base))"
      case .epoch: "it is not a cursor of this store up to its present revision"
      }
    return Problem(
      .unusableCursor,
      "'\(cursor ?? "")': \(fault); read GET /v1/objects and continue from the Keyway-Cursor of that response")
  }
}
