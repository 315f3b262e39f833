import HTTPServer
import ModelStore
import Tokens

/// A session that its owner has ended before its token expires. It is kept with a commit of its own, by which it has
/// ended on every node and after a restart.
struct EndedSession: Hashable, Sendable {
  /// Whose it was.
  let owner: IdentityMark
  /// Its name; nil stands for all of this owner whose tokens were issued before it ended, or do not say when.
  let name: String?
  /// When it ended, in milliseconds since 1970.
  let ended: Int64
  /// Until when it is remembered, in milliseconds since 1970: no token of it is good any more.
  let expires: Int64

  /// What one begins with that is kept with a commit. `StoredResponse` and `PassedAttachment` have the other forms.
  private static let form: UInt8 = 7

  /// A session of these parts.
  init(owner: IdentityMark, name: String?, ended: Int64, expires: Int64) {
    (self.owner, self.name, self.ended, self.expires) = (owner, name, ended, expires)
  }

  /// A session that ends now, of a token that is good until a time; both are seconds since 1970.
  init(_ session: Session, of identity: Identity, now: Double, expires: Double) {
    func milliseconds(_ seconds: Double) -> Int64 { Int64(max(0, min(seconds, 1e12)) * 1_000) }
    self.init(
      owner: IdentityMark(of: identity.subject), name: session.name, ended: milliseconds(now),
      expires: milliseconds(expires.rounded(.up)))
  }

  /// What was kept with a commit; nil where that is something else.
  init?(_ bytes: [UInt8]) {
    let headBytes = 1 + IdentityMark.byteCount + 16
    guard bytes.first == Self.form, bytes.count >= headBytes,
      let owner = IdentityMark(bytes: bytes[1...].prefix(IdentityMark.byteCount)),
      let name = String(validating: bytes[headBytes...], as: UTF8.self)
    else { return nil }
    let (ended, expires) = bytes.withUnsafeBytes { bytes in
      (
        bytes.loadUnaligned(fromByteOffset: headBytes - 16, as: Int64.self),
        bytes.loadUnaligned(fromByteOffset: headBytes - 8, as: Int64.self)
      )
    }
    self.init(
      owner: owner, name: name.isEmpty ? nil : name, ended: Int64(littleEndian: ended),
      expires: Int64(littleEndian: expires))
  }

  /// As it is kept: a byte that names the form, the mark of the owner, both times, the least significant byte first,
  /// and the name, which is the rest.
  var bytes: [UInt8] {
    var bytes = [Self.form]
    owner.append(to: &bytes)
    for time in [ended, expires] { withUnsafeBytes(of: time.littleEndian) { bytes.append(contentsOf: $0) } }
    return bytes + Array((name ?? "").utf8)
  }
}
