import Store
import Support

/// The revocations that count, which the journal keeps: tokens of a `sub` that were issued before its time are refused.
///
/// Lock order: `changing` is held while the journal writes, and `times` is taken inside it for a moment; a
/// request that asks takes `times` alone.
final class Revocations: Sendable {
  let journal: any TransactionJournal
  private let limit: Int
  /// Of each `sub`, by its bytes, in milliseconds since 1970.
  let times: Locked<[[UInt8]: Int64]>
  /// Makes one change come after the other, so that what counts is what is kept.
  let changing = Locked(())
  /// Which change of any node is the last that was read.
  let seenChange = Locked<UInt64?>(nil)
  /// Is called when they have changed, with `changing` held.
  private let changed = Locked<KeptAction<Void, Void>?>(nil)

  /// Reads what a journal keeps; no more than `limit` are taken in addition. Throws what is wrong with it.
  init(of journal: any TransactionJournal, limit: Int) throws(JournalError) {
    self.journal = journal
    self.limit = limit
    times = Locked(try Self.times(in: journal))
  }

  /// What a journal keeps: of each `sub`, by its bytes, the time.
  static func times(in journal: any TransactionJournal) throws(JournalError) -> [[UInt8]: Int64] {
    Dictionary(try journal.revocations().map { ($0.key, $0.milliseconds) }) { max($0, $1) }
  }

  /// Has `body` called after each change of this node, until there is another. It must not change them.
  func onChange(_ body: @escaping @Sendable () -> Void) { changed.withLock { $0 = KeptAction(body) } }

  private func tellChange() { changed.withLock { $0 }?(()) }

  /// How many there are.
  var count: Int { times.withLock { $0.count } }

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
  func all() -> [Revocation] {
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
  var digest: JournalDigest {
    all().reduce(.start) { digest, revocation in
      let time = withUnsafeBytes(of: revocation.milliseconds.littleEndian) { Array($0) }
      return digest.linked(to: revocation.key).linked(to: time)
    }
  }

  /// Puts those of another node in the place of these. Waits for the disk. Throws where some cannot be kept.
  func replace(_ others: [Revocation]) throws(JournalError) {
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
