import HTTPServer
import KeyValueModel
import Store
import Support

/// The sessions of the store that commits have begun and not ended.
///
/// `contents` is the only mutable state. Its lock is held only for a lookup; a sweep and a list of all work on a copy.
package final class Sessions: Sendable {
  /// The limits on the sessions that are kept.
  package struct Limits: Sendable {
    /// The maximum size of all sessions in bytes; a session beyond it is refused. `access.sessionBytes`.
    package var bytes = 64 << 20
    /// The maximum number of sessions of one identity; one more ends its oldest. `access.sessionsPerIdentity`.
    package var perIdentity = 100
  }

  /// A change that is on its way to a commit.
  enum Write: Sendable {
    case begin(SessionRecord)
    case end(SessionDigest)

    fileprivate var digest: SessionDigest {
      switch self {
      case .begin(let record): record.digest
      case .end(let digest): digest
      }
    }
  }

  private struct Entry {
    let record: SessionRecord
    /// The revision of the commit that began it.
    let revision: Revision
    /// True if this node was asked to end the session, although a commit may not have ended it.
    var isEnded = false
  }

  private struct Contents {
    var entries: [SessionDigest: Entry] = [:]
    /// The sessions of each identity, oldest first.
    var owned: [IdentityMark: [SessionDigest]] = [:]
    /// Changes that the writer is committing, by the session that they are about.
    var pending: [SessionDigest: (change: SessionChange, revision: Revision)] = [:]
    var bytes = 0
    /// The time before which expired sessions are not swept, in milliseconds since 1970.
    var nextSweep = Int64.min

    /// Returns the sessions of an identity that end when it begins another.
    func replaced(by record: SessionRecord, _ limits: Limits) -> ArraySlice<SessionDigest> {
      let present = owned[record.owner] ?? []
      return present.prefix(max(0, present.count - limits.perIdentity + 1))
    }

    mutating func apply(_ change: SessionChange, at revision: Revision) {
      for digest in change.ended { remove(digest) }
      guard let record = change.begun, entries[record.digest] == nil else { return }
      entries[record.digest] = Entry(record: record, revision: revision)
      owned[record.owner, default: []].append(record.digest)
      bytes += record.weight
    }

    mutating func remove(_ digest: SessionDigest) {
      guard let record = entries.removeValue(forKey: digest)?.record else { return }
      owned[record.owner]?.removeAll { $0 == digest }
      if owned[record.owner]?.isEmpty == true { owned[record.owner] = nil }
      bytes -= record.weight
    }
  }

  private static let sweepMilliseconds: Int64 = 60_000

  private let limits: Limits
  private let leewayMilliseconds: Int64
  private let contents = Locked(Contents())

  /// Creates an empty table. `leeway` is the number of seconds by which a session outlasts its expiry.
  init(_ limits: Limits, leeway: Int) {
    self.limits = limits
    leewayMilliseconds = Int64(leeway) * 1_000
  }

  /// The number of sessions.
  var count: Int { contents.withLock { $0.entries.count } }

  /// Returns the session of a secret, or nil if there is none or it has ended. The caller checks whether it has
  /// expired.
  func session(of digest: SessionDigest) -> SessionRecord? {
    contents.withLock { contents in
      guard let entry = contents.entries[digest], !entry.isEnded else { return nil }
      return entry.record
    }
  }

  /// Throws `overloaded` if there is no room for a session.
  func checkRoom(for record: SessionRecord) throws(Problem) {
    try contents.withLock { [limits] contents throws(Problem) in
      let freed = contents.replaced(by: record, limits).reduce(0) { $0 + (contents.entries[$1]?.record.weight ?? 0) }
      guard contents.bytes - freed + record.weight <= limits.bytes else {
        throw Problem(.overloaded, "the sessions take as many bytes as access.sessionBytes allows; try again later")
      }
    }
  }

  /// Ends a session on this node only; a commit ends it everywhere. Returns false if there is no such session.
  func end(_ digest: SessionDigest) -> Bool {
    contents.withLock { contents in
      guard contents.entries[digest] != nil else { return false }
      contents.entries[digest]?.isEnded = true
      return true
    }
  }

  // MARK: Commits

  /// Returns the attachment of the commit of a write, which has a revision now. Called on the writer. The commit may
  /// still fail, and may be prepared again with another revision.
  func prepare(_ write: Write, at revision: Revision) -> SessionChange {
    contents.withLock { [limits] contents in
      let change =
        switch write {
        case .begin(let record): SessionChange(begun: record, ended: Array(contents.replaced(by: record, limits)))
        case .end(let digest): SessionChange(ended: [digest])
        }
      contents.pending[write.digest] = (change, revision)
      return change
    }
  }

  /// Concludes a write, whether or not it was prepared: its commit is durable, or has failed.
  func conclude(_ write: Write, isDone: Bool) {
    contents.withLock { contents in
      guard let (change, revision) = contents.pending.removeValue(forKey: write.digest), isDone else { return }
      contents.apply(change, at: revision)
    }
  }

  /// Applies the changes among attachments, oldest first, that come from other nodes or from before a restart, whatever
  /// the limits are. `now` is in milliseconds since 1970: expired sessions are left out.
  func restore(_ attachments: [StoredAttachment], at now: Int64) {
    for attachment in attachments {
      guard var change = SessionChange(attachment.bytes) else { continue }
      if let record = change.begun, isExpired(record, at: now) { change = SessionChange(ended: change.ended) }
      contents.withLock { $0.apply(change, at: attachment.revision) }
    }
  }

  /// Returns the sessions that the commits up to a revision have begun and not ended, as attachments, oldest first.
  /// Sessions that a later commit has ended may be left out; that commit comes after the revision.
  func kept(upTo last: Revision) -> [StoredAttachment] {
    let (entries, pending) = contents.withLock { ($0.entries, $0.pending.values.filter { $0.revision <= last }) }
    let ended = Set(pending.flatMap(\.change.ended))
    let begun = pending.compactMap { pending in pending.change.begun.map { ($0, pending.revision) } }
    return (entries.values.map { ($0.record, $0.revision) } + begun)
      .filter { $0.1 <= last && !ended.contains($0.0.digest) }
      .sorted { $0.1 < $1.1 }
      .map { record, revision in
        StoredAttachment(revision: revision, milliseconds: record.expires, bytes: SessionChange(begun: record).bytes)
      }
  }

  // MARK: Expiry

  /// Forgets the sessions that have expired, once a minute. `now` is in milliseconds since 1970.
  func sweep(now: Int64) {
    let entries = contents.withLock { contents -> [SessionDigest: Entry]? in
      guard now >= contents.nextSweep else { return nil }
      contents.nextSweep = now + Self.sweepMilliseconds
      return contents.entries
    }
    guard let expired = entries?.filter({ isExpired($0.value.record, at: now) }).keys, !expired.isEmpty else { return }
    contents.withLock { contents in
      for digest in expired { contents.remove(digest) }
    }
  }

  private func isExpired(_ record: SessionRecord, at now: Int64) -> Bool {
    record.expires + leewayMilliseconds <= now
  }
}

/// A session as the store keeps it: its owner and its expiry, but not the secret that its holder has.
struct SessionRecord: Hashable, Sendable {
  /// The digest of its secret.
  let digest: SessionDigest
  /// The identity that it counts for.
  let owner: IdentityMark
  /// Its expiry, that of its token without any leeway, in milliseconds since 1970.
  let expires: Int64
  /// The time of the sign-in with a password, in milliseconds since 1970; nil if a token proved the identity.
  let signedIn: Int64?
  /// The key that its token was verified with, or the mark of its account.
  let key: KeyMark
  /// The claims of its identity, as JSON.
  let claims: [UInt8]

  /// Creates a session that lasts as long as an identity.
  init(_ digest: SessionDigest, of identity: Identity) {
    self.digest = digest
    owner = IdentityMark(of: identity.subject)
    expires = Int64(max(0, min(identity.expires, 1e12)).rounded(.up)) * 1_000
    signedIn = identity.isOfAccount ? identity.issued.map { Int64($0 * 1_000) } : nil
    key = identity.key
    claims = Array(Value.object(identity.claims).json.utf8)
  }

  /// The identity of an account that signed in; nil if a token proved the identity.
  var accountIdentity: Identity? {
    guard let signedIn, case .object(let claims)? = try? Value(json: claims), let subject = claims["sub"]?.asString
    else { return nil }
    return Identity(
      claims: claims, subject: subject, expires: Double(expires) / 1_000, issued: Double(signedIn) / 1_000, key: key,
      isOfAccount: true)
  }

  /// The approximate size in memory, in bytes.
  fileprivate var weight: Int { 400 + claims.count }
}

/// An attachment of a commit that begins a session, ends some, or both. Sessions that have to make room for another end
/// with the same commit, so that all nodes agree on which they are.
///
/// The form is a byte that names it, the number of ended sessions in four bytes, the digest of each, and the session
/// that begins, if one does: a byte for the kind of its identity, the digest, the owner, the expiry, the time of the
/// sign-in if a password proved the identity, the mark of the key, and the claims, which are the rest. The least
/// significant byte of a number comes first.
struct SessionChange: Hashable, Sendable {
  /// The session that begins; nil if none does.
  let begun: SessionRecord?
  /// The sessions that end.
  let ended: [SessionDigest]

  /// The first byte of the form. 7 was the form of sessions that had ended before their tokens expired, whose cookies
  /// carried these tokens; `StoredResponse` and `PassedAttachment` have the other forms.
  private static let form: UInt8 = 8
  /// The kinds of identities: those that a token proved, and those that a password proved.
  private static let (tokenKind, accountKind): (UInt8, UInt8) = (1, 2)

  /// Creates a change that begins a session, ends some, or both.
  init(begun: SessionRecord? = nil, ended: [SessionDigest] = []) { (self.begun, self.ended) = (begun, ended) }

  /// Reads an attachment, or returns nil if it has another form or is cut off.
  init?(_ bytes: [UInt8]) {
    guard bytes.first == Self.form else { return nil }
    var rest = bytes.dropFirst()
    guard let count = rest.takeInteger(UInt32.self), Int(count) <= rest.count / SessionDigest.byteCount else {
      return nil
    }
    var ended: [SessionDigest] = []
    for _ in 0..<count {
      guard let digest = rest.take(SessionDigest.byteCount).flatMap({ SessionDigest(bytes: $0) }) else { return nil }
      ended.append(digest)
    }
    self.ended = ended
    guard let kind = rest.popFirst() else {
      begun = nil
      return
    }
    guard kind == Self.tokenKind || kind == Self.accountKind,
      let record = SessionRecord(&rest, isOfAccount: kind == Self.accountKind)
    else { return nil }
    begun = record
  }

  /// The attachment.
  var bytes: [UInt8] {
    var bytes = [Self.form]
    bytes.append(littleEndian: UInt32(ended.count))
    for digest in ended { bytes.append(contentsOf: digest.bytes) }
    guard let begun else { return bytes }
    bytes.append(begun.signedIn == nil ? Self.tokenKind : Self.accountKind)
    bytes.append(contentsOf: begun.digest.bytes)
    begun.owner.append(to: &bytes)
    bytes.append(littleEndian: begun.expires)
    if let signedIn = begun.signedIn { bytes.append(littleEndian: signedIn) }
    return bytes + begun.key.digest + begun.claims
  }
}

extension SessionRecord {
  /// Reads the bytes after the kind of an identity, or returns nil if they are cut off.
  fileprivate init?(_ rest: inout ArraySlice<UInt8>, isOfAccount: Bool) {
    guard let digest = rest.take(SessionDigest.byteCount).flatMap({ SessionDigest(bytes: $0) }),
      let owner = rest.take(IdentityMark.byteCount).flatMap({ IdentityMark(bytes: $0) }),
      let expires = rest.takeInteger(Int64.self)
    else { return nil }
    let signedIn = isOfAccount ? rest.takeInteger(Int64.self) : nil
    guard signedIn != nil || !isOfAccount, let key = rest.take(KeyMark.byteCount) else { return nil }
    (self.digest, self.owner, self.expires, self.signedIn) = (digest, owner, expires, signedIn)
    (self.key, claims) = (KeyMark(digest: Array(key)), Array(rest))
  }
}
