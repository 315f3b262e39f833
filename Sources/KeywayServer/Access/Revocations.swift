import HTTPServer
import HTTPTypes
import KeyValueModel
package import Store
import Support

/// The revocations in effect, which the journal keeps. Tokens of a `sub` that were issued before its time are refused.
///
/// Lock order: `changing` is held while the journal writes, and `times` is taken inside it for a moment; a request
/// takes only `times`.
package final class Revocations: Sendable {
  private let journal: any TransactionJournal
  private let limit: Int
  /// The time of each revocation in milliseconds since 1970, by the UTF-8 bytes of its `sub`.
  private let times: Locked<[[UInt8]: Int64]>
  /// Serializes changes, so that the revocations in effect are those that the journal keeps.
  private let changing = Locked(())
  /// The number of the last change of any node that was read.
  private let seenChange = Locked<UInt64?>(nil)
  /// The action to call after a change, with `changing` held.
  private let changed = Locked<KeptAction<Void, Void>?>(nil)

  /// Reads the revocations that a journal keeps. Once there are `limit`, further ones are refused. Throws a
  /// `JournalError` if they cannot be read.
  init(of journal: any TransactionJournal, limit: Int) throws(JournalError) {
    self.journal = journal
    self.limit = limit
    times = Locked(try Self.times(in: journal))
  }

  /// Reads the time of each `sub`, by its UTF-8 bytes, from a journal.
  private static func times(in journal: any TransactionJournal) throws(JournalError) -> [[UInt8]: Int64] {
    Dictionary(try journal.revocations().map { ($0.key, $0.milliseconds) }) { max($0, $1) }
  }

  /// Calls `body` after each change of this node, until another action is set. The action must not change the
  /// revocations.
  package func onChange(_ body: @escaping @Sendable () -> Void) { changed.withLock { $0 = KeptAction(body) } }

  private func tellChange() { changed.withLock { $0 }?(()) }

  /// The number of revocations.
  package var count: Int { times.withLock { $0.count } }

  /// Returns true if the token of an identity is refused: its `sub` has a revocation, and the token was issued before
  /// the time of that or does not say when it was issued.
  func refuses(_ identity: Identity) -> Bool {
    let time = times.withLock { $0.isEmpty ? nil : $0[Array(identity.subject.utf8)] }
    guard let time else { return false }
    guard let issued = identity.issued else { return true }
    return issued * 1_000 < Double(time)
  }

  /// Returns the revocation of a `sub`, or nil if there is none.
  func revocation(of subject: String) -> Revocation? {
    times.withLock { $0[Array(subject.utf8)] }.map { Revocation(subject: subject, milliseconds: $0) }
  }

  /// Returns all revocations in the order of the bytes of their `sub`.
  package func all() -> [Revocation] {
    times.withLock { $0 }.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { entry in
      Revocation(subject: String(decoding: entry.key, as: UTF8.self), milliseconds: entry.value)
    }
  }

  /// Adds a revocation, or changes the time of one. It takes effect once the journal keeps it. Returns true if its
  /// `sub` had none. Waits for the disk. Throws `overloaded` if the maximum number is reached, and `store-unavailable`.
  func add(_ revocation: Revocation) throws(Problem) -> Bool {
    try changing.withLock { _ throws(Problem) in
      try takeChangesOfOthers()
      let (isNew, count) = times.withLock { ($0[revocation.key] == nil, $0.count) }
      guard !isNew || count < limit else {
        throw Problem(.overloaded, "the maximum number of revocations is reached (access.revocations); lift some first")
      }
      try carryOut { () throws(JournalError) in
        try journal.setRevocation(of: revocation.subject, to: revocation.milliseconds)
      }
      times.withLock { $0[revocation.key] = revocation.milliseconds }
      tellChange()
      return isNew
    }
  }

  /// Lifts the revocation of a `sub`. Returns false if there is none. Waits for the disk. Throws `store-unavailable`.
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

  /// The digest of all revocations.
  package var digest: JournalDigest {
    all().reduce(.start) { digest, revocation in
      let time = withUnsafeBytes(of: revocation.milliseconds.littleEndian) { Array($0) }
      return digest.linked(to: revocation.key).linked(to: time)
    }
  }

  /// Replaces the revocations with those of another node. Waits for the disk. Throws if some cannot be kept.
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

  /// Reads the revocations again if another node has changed them. If they cannot be read, those that were read last
  /// stay in effect until the next attempt.
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

  /// Reads the changes of other nodes, so that the response to a change takes them into account. Called with `changing`
  /// held.
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

/// `/v1/access/revocations`: the identities whose tokens are refused.
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

  /// `PUT`: adds a revocation, or changes the time of one. Responds with it, with 201 if it is new.
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

  /// Returns the response of work that waits for the disk, which no connection thread does.
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
      throw Problem(.invalidValue, "the sub in the path is longer than \(TokenVerifier.maximumSubjectBytes) bytes")
    }
    return subject
  }

  /// Returns `before` of a body in milliseconds since 1970, or the present time if there is no body or it has no
  /// `before`.
  private static func time(of request: borrowing Request) throws(Problem) -> Int64 {
    var body = JSONObject()
    if !request.body().isEmpty { body = try Body.object(of: request) }
    for (name, _) in body.members where name != "before" {
      throw Problem(.invalidValue, "'\(name)' is not a member of a revocation; its only member is 'before'")
    }
    guard let before = body["before"] else { return SystemClock.epochMilliseconds }
    guard case .string(let text) = before, text.utf8.count > 10, let instant = RFC3339Instant(text) else {
      throw Problem(.invalidValue, "before must be a date and time of RFC 3339 such as 2026-03-01T09:30:00Z")
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
    Problem(.notFound, "the tokens of '\(subject)' are not revoked")
  }
}
