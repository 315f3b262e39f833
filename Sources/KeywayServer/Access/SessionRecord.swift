import HTTPServer
import KeyValueModel

/// A session, as the store keeps it: whose it is and until when, but not the secret that its holder has.
struct SessionRecord: Hashable, Sendable {
  /// The digest of its secret.
  let digest: SessionDigest
  /// The identity that it counts for.
  let owner: IdentityMark
  /// The expiry of its token without any leeway, in milliseconds since 1970.
  let expires: Int64
  /// The key that its token was verified with.
  let key: KeyMark
  /// The claims of its token, as JSON.
  let claims: [UInt8]

  /// A session that lasts as long as the token of an identity.
  init(_ digest: SessionDigest, of identity: Identity) {
    self.digest = digest
    owner = IdentityMark(of: identity.subject)
    expires = Int64(max(0, min(identity.expires, 1e12)).rounded(.up)) * 1_000
    key = identity.key
    claims = Array(Value.object(identity.claims).json.utf8)
  }
}

/// An attachment of a commit that begins a session, ends some, or both: sessions that have to make room for another end
/// by the same commit, so that all nodes agree on which they are.
///
/// The form is a byte that names it, the number of ended sessions in four bytes, the digest of each, and the session
/// that begins, if one does: a byte for the kind of its identity, the digest, the owner, the expiry, the mark of the
/// key, and the claims, which are the rest. The least significant byte of a number comes first.
struct SessionChange: Hashable, Sendable {
  /// The session that begins; nil if none does.
  let begun: SessionRecord?
  /// The sessions that end.
  let ended: [SessionDigest]

  /// The first byte of the form. 7 was the form of sessions that had ended before their tokens expired, whose cookies
  /// carried these tokens; `StoredResponse` and `PassedAttachment` have the other forms.
  private static let form: UInt8 = 8
  /// The kind of an identity that a token proved.
  private static let tokenKind: UInt8 = 1

  /// A change that begins a session, ends some, or both.
  init(begun: SessionRecord? = nil, ended: [SessionDigest] = []) { (self.begun, self.ended) = (begun, ended) }

  /// Reads an attachment. Nil if it is of another form, or cut off.
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
    guard kind == Self.tokenKind, let record = SessionRecord(&rest) else { return nil }
    begun = record
  }

  /// The attachment.
  var bytes: [UInt8] {
    var bytes = [Self.form]
    withUnsafeBytes(of: UInt32(ended.count).littleEndian) { bytes.append(contentsOf: $0) }
    for digest in ended { bytes.append(contentsOf: digest.bytes) }
    guard let begun else { return bytes }
    bytes.append(Self.tokenKind)
    bytes.append(contentsOf: begun.digest.bytes)
    begun.owner.append(to: &bytes)
    withUnsafeBytes(of: begun.expires.littleEndian) { bytes.append(contentsOf: $0) }
    return bytes + begun.key.digest + begun.claims
  }
}

extension SessionRecord {
  /// Reads what follows the kind of an identity that a token proved; nil if it is cut off.
  fileprivate init?(_ rest: inout ArraySlice<UInt8>) {
    guard let digest = rest.take(SessionDigest.byteCount).flatMap({ SessionDigest(bytes: $0) }),
      let owner = rest.take(IdentityMark.byteCount).flatMap({ IdentityMark(bytes: $0) }),
      let expires = rest.takeInteger(Int64.self), let key = rest.take(KeyMark.byteCount)
    else { return nil }
    (self.digest, self.owner, self.expires) = (digest, owner, expires)
    (self.key, claims) = (KeyMark(digest: Array(key)), Array(rest))
  }
}

extension ArraySlice<UInt8> {
  /// Removes and returns the first bytes; nil if there are fewer.
  fileprivate mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard self.count >= count else { return nil }
    defer { self = dropFirst(count) }
    return prefix(count)
  }

  /// Removes and returns a number, whose least significant byte comes first; nil if there are too few bytes.
  fileprivate mutating func takeInteger<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
    take(MemoryLayout<Number>.size)?.withUnsafeBytes { Number(littleEndian: $0.loadUnaligned(as: Number.self)) }
  }
}
