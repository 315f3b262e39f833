import Crypto
import KeyValueModel
import Support

/// The name of an account: 1 to 128 letters, digits and `. _ ~ - + @` of ASCII. Two names that differ in case alone are
/// the same.
struct AccountName: Hashable, Sendable, CustomStringConvertible {
  /// The maximum number of characters.
  static let maximumCount = 128

  /// The name as it was first given.
  let text: String
  /// The name in small letters.
  private let folded: String

  /// Creates a name; nil unless the text is one.
  init?(_ text: String) {
    guard (1...Self.maximumCount).contains(text.utf8.count), text.utf8.allSatisfy(Self.isPermitted) else { return nil }
    (self.text, folded) = (text, text.lowercased())
  }

  private static func isPermitted(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "._~-+@".utf8.contains(byte)
    }
  }

  /// The rule for names, as the rest of a sentence.
  static let rule = "is not a name: 1 to \(maximumCount) letters, digits and . _ ~ - + @"

  var description: String { text }

  static func == (left: AccountName, right: AccountName) -> Bool { left.folded == right.folded }

  func hash(into hasher: inout Hasher) { hasher.combine(folded) }

  /// Returns true if a name comes before another in lists: by their small letters.
  static func < (left: AccountName, right: AccountName) -> Bool { left.folded < right.folded }
}

/// An account of the store: a name, the hash of a password, and the claims of the identity that signs in with it.
struct Account: Hashable, Sendable {
  /// The claims that an account cannot have, because the server sets them.
  static let reservedClaims = ["sub", "iss", "exp"]

  let name: AccountName
  let password: PasswordHash
  /// The claims besides `sub`, as JSON with the members in order.
  private let claimsText: [UInt8]

  /// Creates an account.
  init(_ name: AccountName, password: PasswordHash, claims: JSONObject) {
    self.init(name, password, claimsText: Array(Value.object(claims).json.utf8))
  }

  private init(_ name: AccountName, _ password: PasswordHash, claimsText: [UInt8]) {
    (self.name, self.password, self.claimsText) = (name, password, claimsText)
  }

  /// The claims besides `sub`.
  var claims: JSONObject {
    guard case .object(let claims)? = try? Value(json: claimsText) else { return [:] }
    return claims
  }

  /// The mark by which sessions name the account as it is now. Another password, other claims or another account of
  /// this name have another mark, under which the sessions end.
  var mark: KeyMark {
    KeyMark(digest: Array(SHA256.hash(data: bytes)))
  }

  /// The approximate size in memory, in bytes.
  var weight: Int { Self.weight(name, claimBytes: claimsText.count) }

  /// Returns the approximate size in memory of an account, in bytes.
  static func weight(_ name: AccountName, claimBytes: Int) -> Int { 400 + 2 * name.text.utf8.count + claimBytes }

  // MARK: Stored form

  /// The stored form: the length of the name in a byte, the name, the hash, and the claims, which are the rest.
  fileprivate var bytes: [UInt8] { [UInt8(name.text.utf8.count)] + name.text.utf8 + password.bytes + claimsText }

  /// Reads the stored form. Nil if it is cut off.
  fileprivate init?(_ bytes: ArraySlice<UInt8>) {
    var rest = bytes
    guard let name = AccountName(stored: &rest),
      let password = rest.take(PasswordHash.byteCount).flatMap({ PasswordHash(bytes: $0) })
    else { return nil }
    self.init(name, password, claimsText: Array(rest))
  }
}

extension AccountName {
  /// Reads a length in a byte, and a name of that length. Nil if they are cut off.
  fileprivate init?(stored rest: inout ArraySlice<UInt8>) {
    guard let count = rest.popFirst(), let text = rest.take(Int(count)).map({ String(decoding: $0, as: UTF8.self) })
    else { return nil }
    self.init(text)
  }
}

/// An attachment of a commit that sets or removes an account.
///
/// The form is a byte that names it, a byte for the change, and the account, or the name of the removed one with its
/// length in a byte before it.
enum AccountChange: Hashable, Sendable {
  case set(Account)
  case remove(AccountName)

  /// The first byte of the form; `SessionChange`, `StoredResponse` and `PassedAttachment` have the other forms.
  private static let form: UInt8 = 9
  private static let (setting, removal): (UInt8, UInt8) = (1, 2)

  /// The name of the account.
  var name: AccountName {
    switch self {
    case .set(let account): account.name
    case .remove(let name): name
    }
  }

  /// Reads an attachment, or returns nil if it has another form or is cut off.
  init?(_ bytes: [UInt8]) {
    guard bytes.count > 2, bytes[0] == Self.form else { return nil }
    var rest = bytes[2...]
    switch bytes[1] {
    case Self.setting:
      guard let account = Account(rest) else { return nil }
      self = .set(account)
    case Self.removal:
      guard let name = AccountName(stored: &rest), rest.isEmpty else { return nil }
      self = .remove(name)
    default: return nil
    }
  }

  /// The attachment.
  var bytes: [UInt8] {
    switch self {
    case .set(let account): [Self.form, Self.setting] + account.bytes
    case .remove(let name): [Self.form, Self.removal, UInt8(name.text.utf8.count)] + name.text.utf8
    }
  }
}
