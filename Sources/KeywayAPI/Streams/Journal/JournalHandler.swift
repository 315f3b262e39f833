import HTTPServer
import HTTPTypes
import Journal
import KeyValueModel
import ModelStore

/// `GET /v1/journal`: the committed transactions themselves, for services that follow everything.
struct JournalHandler: Sendable {
  let store: Store
  let streams: JournalStreams
  let limits: RequestLimits

  /// What is read of the journal at a time.
  private static let chunkRecords = 512
  private static let chunkBytes = 1 << 20

  /// The journal as a stream.
  func open(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try target.allowOnly("since", "limit", "overflow")
    let overflow = try target.overflow()
    if request.method == .head { return .response(Response(status: .ok, fields: .eventStream)) }
    let stream = try streams.open(target.cursor(of: request), overflow: overflow, in: store)
    return .stream(stream, fields: .eventStream)
  }

  /// The journal as lines, one a transaction.
  func lines(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let target = context.target
    try target.allowOnly("since", "limit", "overflow")
    let limit = try target.limit(upTo: limits.journalRecords)
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
    do throws(JournalError) {
      try appendLines(to: &bytes, after: &last, through: present, limit)
    } catch {
      // What was read before it was forgotten, or before what is damaged, is as good as any answer that is not full.
      if bytes.isEmpty { throw problem(error, cursor ?? store.cursor(start).description) }
    }
    let fields: HTTPFields = [.contentType: Negotiation.Form.lines.type, .keywayCursor: store.cursor(last).description]
    return .response(Response(status: .ok, fields: fields, body: bytes))
  }

  /// Appends the transactions after a revision, which becomes that of the last of them.
  private func appendLines(
    to bytes: inout [UInt8], after last: inout Revision, through present: Revision, _ limit: Int
  ) throws(JournalError) {
    var count = 0
    while count < limit, bytes.count < limits.journalBytes {
      let records = try store.journal.records(
        after: last, through: present, limit: min(limit - count, Self.chunkRecords),
        bytes: min(limits.journalBytes - bytes.count, Self.chunkBytes))
      if records.isEmpty { break }
      for record in records {
        let end = bytes.count
        try record.appendFeedText(to: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        if bytes.count > limits.journalBytes, count > 0 {
          bytes.removeSubrange(end...)
          return
        }
        last = record.revision
        count += 1
      }
    }
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
      case .compacted, .overflow: "the journal begins with what comes after \(store.cursor(base))"
      case .epoch: "it is no cursor of this store up to its present revision"
      }
    return Problem(
      .unusableCursor,
      "'\(cursor ?? "")': \(fault); read GET /v1/objects and go on from the Keyway-Cursor of that answer")
  }
}
