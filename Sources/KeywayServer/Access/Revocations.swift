import HTTPServer
import HTTPTypes
import KeyValueModel
package import Store
import Support

/// The revocations that count, which the journal keeps: tokens of a `sub` that were issued before its time are refused.
///
/// Lock order: `changing` is held while the journal writes, and `times` is taken inside it for a moment; a
/// request that asks takes `times` alone.
package final class Revocations: Sendable {
  private let journal: any TransactionJournal
  private let limit: Int
  /// Of each `sub`, by its bytes, in milliseconds since 1970.
  private let times: Locked<[[UInt8]: Int64]>
  /// Makes one change come after the other, so that what counts is what is kept.
  private let changing = Locked(())
  /// Which change of any node is the last that was read.
  private let seenChange = Locked<UInt64?>(nil)
  /// Is called when they have changed, with `changing` held.
  private let changed = Locked<KeptAction<Void, Void>?>(nil)

  /// Reads what a journal keeps; no more than `limit` are taken in addition. Throws what is wrong with it.
  init(of journal: any TransactionJournal, limit: Int) throws(JournalError) {
    self.journal = journal
    self.limit = limit
    times = Locked(try Self.times(in: journal))
  }

  /// What a journal keeps: of each `sub`, by its bytes, the time.
  private static func times(in journal: any TransactionJournal) throws(JournalError) -> [[UInt8]: Int64] {
    Dictionary(try journal.revocations().map { ($0.key, $0.milliseconds) }) { max($0, $1) }
  }

  /// Has `body` called after each change of this node, until there is another. It must not change them.
  package func onChange(_ body: @escaping @Sendable () -> Void) { changed.withLock { $0 = KeptAction(body) } }

  private func tellChange() { changed.withLock { $0 }?(()) }

  /// How many there are.
  package var count: Int { times.withLock { $0.count } }

  /// Whether the token of an identity is refused: it was issued before the time of its `sub`, or does not say when.
  func refuses(_ identity: Identity) -> Bool {
    let time = times.withLock { $0.isEmpty ? nil : $0[Array(identity.subject.utf8)] }
    guard let time else { return false }
    guard let issued = identity.issued else { return true }
    return issued * 1_000 < Double(time)
  }

  /// The revocation of a `sub`; nil where there is none.
  func revocation(of subject: String) -> Revocation? {
    times.withLock { $0[Array(subject.utf8)] }.map { Revocation(subject: subject, milliseconds: $0) }
  }

  /// All, by the bytes of their `sub`.
  package func all() -> [Revocation] {
    times.withLock { $0 }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { entry in
      Revocation(subject: String(decoding: entry.key, as: UTF8.self), milliseconds: entry.value)
    }
  }

  /// Makes one that counts once it is kept. True where there was none of its `sub`. Waits for the disk. Throws
  /// `overloaded` where there are as many as there may be, and `store-unavailable`.
  func add(_ revocation: Revocation) throws(Problem) -> Bool {
    try changing.withLock { _ throws(Problem) in
      try takeChangesOfOthers()
      let (isNew, count) = times.withLock { ($0[revocation.key] == nil, $0.count) }
      guard !isNew || count < limit else {
        throw Problem(.overloaded, "there are as many revocations as access.revocations allows; lift some first")
      }
      try carryOut { () throws(JournalError) in
        try journal.setRevocation(of: revocation.subject, to: revocation.milliseconds)
      }
      times.withLock { $0[revocation.key] = revocation.milliseconds }
      tellChange()
      return isNew
    }
  }

  /// Lifts the one of a `sub`. False where there is none. Waits for the disk. Throws `store-unavailable`.
  func remove(_ subject: String) throws(Problem) -> Bool {
    try changing.withLock { _ throws(Problem) in
      try takeChangesOfOthers()
      let key = Array(subject.utf8)
      guard times.withLock({ $0[key] != nil }) else { return false }
      try carryOut { () throws(JournalError) in try journal.setRevocation(of: subject, to: nil) }
      times.withLock { $0[key] = nil }
      tellChange()
      return true
    }
  }

  /// The digest of all of them.
  package var digest: JournalDigest {
    all().reduce(.start) { digest, revocation in
      let time = withUnsafeBytes(of: revocation.milliseconds.littleEndian) { Array($0) }
      return digest.linked(to: revocation.key).linked(to: time)
    }
  }

  /// Puts those of another node in the place of these. Waits for the disk. Throws where some cannot be kept.
  package func replace(_ others: [Revocation]) throws(JournalError) {
    try changing.withLock { _ throws(JournalError) in
      let wanted = Dictionary(others.map { ($0.key, $0) }) { first, _ in first }
      let present = times.withLock { $0 }
      for (key, revocation) in wanted where present[key] != revocation.milliseconds {
        try journal.setRevocation(of: revocation.subject, to: revocation.milliseconds)
        times.withLock { $0[key] = revocation.milliseconds }
      }
      for key in present.keys where wanted[key] == nil {
        try journal.setRevocation(of: String(decoding: key, as: UTF8.self), to: nil)
        times.withLock { $0[key] = nil }
      }
      if wanted.mapValues(\.milliseconds) != present { tellChange() }
    }
  }

  // MARK: Changes of other nodes

  /// Reads them again where another node has changed them. Where they cannot be read, those that were read last count
  /// until the next attempt.
  func refresh() {
    guard let shared = journal as? any SharedJournal else { return }
    let change = shared.revocationChanges
    guard seenChange.withLock({ $0 != change }) else { return }
    changing.withLock { _ in
      guard let kept = try? Self.times(in: shared) else { return }
      times.withLock { $0 = kept }
      seenChange.withLock { $0 = change }
    }
  }

  /// What is answered to a change is judged by what other nodes have changed before it, too. With `changing` held.
  private func takeChangesOfOthers() throws(Problem) {
    guard journal is any SharedJournal else { return }
    try carryOut { () throws(JournalError) in
      let kept = try Self.times(in: journal)
      times.withLock { $0 = kept }
    }
  }

  private func carryOut(_ change: () throws(JournalError) -> Void) throws(Problem) {
    do throws(JournalError) {
      try change()
    } catch {
      throw Problem(.storeUnavailable, "the revocation cannot be kept: \(journal.publicReason(error))")
    }
  }
}

/// `/v1/access/revocations`: whose tokens are refused.
struct RevocationHandlers: Sendable {
  let revocations: Revocations
  let readings: Readings

  /// `GET` of all: `{"revocations":[{"sub":…,"before":…}]}`, by the bytes of `sub`.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return try readings.response(to: request, isLong: revocations.count > 1_000) {
      [revocations] budget throws(Problem) in
      let entries = revocations.all().map { Value.object(Self.members(of: $0)) }
      return try Response.json(["revocations": .array(entries)], within: budget)
    }
  }

  /// `GET` of one.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let subject = try subject(context)
    guard let revocation = revocations.revocation(of: subject) else { throw Self.unknown(subject) }
    return .response(Self.response(revocation))
  }

  /// `PUT`: makes one, or gives the one that is there another time. Answers with it, 201 where it is new.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let revocation = Revocation(subject: try subject(context), milliseconds: try Self.time(of: request))
    return deferred(for: request.client) { [revocations] () throws(Problem) in
      let isNew = try revocations.add(revocation)
      return Self.response(revocation, status: isNew ? .created : .ok)
    }
  }

  /// `DELETE`: lifts one.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let subject = try subject(context)
    return deferred(for: request.client) { [revocations] () throws(Problem) in
      guard try revocations.remove(subject) else { throw Self.unknown(subject) }
      return Response(status: .noContent)
    }
  }

  /// The answer of work that waits for the disk, which no thread of connections does.
  private func deferred(
    for client: ClientAddress, _ work: @escaping @Sendable () throws(Problem) -> Response
  ) -> HandlerResponse {
    .deferred { [readings] completion in
      readings.perform(for: client, completion) {
        do throws(Problem) {
          completion.respond(try work())
        } catch {
          completion.respond(error.response)
        }
      }
    }
  }

  private func subject(_ context: RequestContext) throws(Problem) -> String {
    try context.checkParameters()
    let subject = context[.sub]
    guard subject.utf8.count <= TokenVerifier.maximumSubjectBytes else {
      throw Problem(.invalidValue, "the sub in the path has at most \(TokenVerifier.maximumSubjectBytes) bytes")
    }
    return subject
  }

  /// `before` of a body in milliseconds since 1970; now, where there is no body or it does not say.
  private static func time(of request: borrowing Request) throws(Problem) -> Int64 {
    var body = JSONObject()
    if !request.body().isEmpty { body = try Body.object(of: request) }
    for (name, _) in body.members where name != "before" {
      throw Problem(.invalidValue, "'\(name)' is no member of a revocation; it has before")
    }
    guard let before = body["before"] else { return SystemClock.epochMilliseconds }
    guard case .string(let text) = before, text.utf8.count > 10, let instant = RFC3339Instant(text) else {
      throw Problem(.invalidValue, "before wants a date and time of RFC 3339 such as 2026-03-01T09:30:00Z")
    }
    // Rounded up, so that no token is let in that should be refused.
    return instant.seconds * 1_000 + Int64((instant.nanoseconds + 999_999) / 1_000_000)
  }

  private static func response(_ revocation: Revocation, status: HTTPResponse.Status = .ok) -> Response {
    var response = Response.json(members(of: revocation))
    response.status = status
    return response
  }

  private static func members(of revocation: Revocation) -> JSONObject {
    [
      "sub": .string(revocation.subject), "before": .string(RFC3339.dateTime(milliseconds: revocation.milliseconds)),
    ]
  }

  private static func unknown(_ subject: String) -> Problem {
    Problem(.notFound, "there is no revocation of '\(subject)'")
  }
}
