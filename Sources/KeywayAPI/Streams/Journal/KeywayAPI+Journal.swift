internal import HTTPServer
internal import HTTPTypes
internal import Journal
internal import KeyValueModel
internal import ModelStore

/// `GET /v1/journal`: the committed transactions themselves, for services that follow everything.
extension KeywayAPI {
  /// What is read of the journal at a time.
  private static let chunkRecords = 512
  private static let chunkBytes = 1 << 20

  func getJournal(_ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    try target.allowOnly("since", "limit", "overflow")
    let form = try form(of: request, available: [.lines, .stream])
    return form == .lines ? try journalLines(target) : try openJournal(request, target)
  }

  // MARK: As a stream

  private func openJournal(_ request: borrowing Request, _ target: Target) throws(Problem) -> HandlerResponse {
    let overflow = try overflow(target)
    if request.method == .head { return .response(Response(status: .ok, fields: Self.streamFields)) }
    let stream = try journalStreams.open(cursor(of: request, target), overflow: overflow, in: store)
    return .stream(stream, fields: Self.streamFields)
  }

  // MARK: As lines

  private func journalLines(_ target: Target) throws(Problem) -> HandlerResponse {
    let limit = try journalLimit(target)
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
      if bytes.isEmpty { throw problem(error, cursor ?? self.cursor(start)) }
    }
    let fields: HTTPFields = [.contentType: Negotiation.Form.lines.type, .keywayCursor: self.cursor(last)]
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

  private func journalLimit(_ target: Target) throws(Problem) -> Int {
    guard let text = target["limit"] else { return limits.journalRecords }
    guard let limit = Int(text), (1...limits.journalRecords).contains(limit) else {
      throw Problem(.malformedQuery, "limit is a whole number from 1 to \(limits.journalRecords)")
    }
    return limit
  }

  private func problem(_ error: JournalError, _ cursor: String?) -> Problem {
    switch error {
    case .compacted(let base): unusableCursor(cursor, .compacted, base)
    default: Problem(.storeUnavailable, "the journal cannot be read: \(error)")
    }
  }

  private func unusableCursor(_ cursor: String?, _ reason: Resumption.Reset, _ base: Revision) -> Problem {
    let fault =
      switch reason {
      case .compacted, .overflow: "the journal begins with what comes after \(self.cursor(base))"
      case .epoch: "it is no cursor of this store up to its present revision"
      }
    return Problem(
      .unusableCursor,
      "'\(cursor ?? "")': \(fault); read GET /v1/objects and go on from the Keyway-Cursor of that answer")
  }
}
