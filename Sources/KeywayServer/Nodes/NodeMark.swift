import Crypto
import Support

/// Six letters and digits that stand for the address of a node. The names of its streams and pages begin with them, so
/// that every node that knows the address can tell whose a name is, and none has to remember names.
struct NodeMark: Hashable, Sendable {
  /// The letters and digits.
  let text: String

  private static let length = 6
  /// How many marks there are: 36 to the power of the length.
  private static let count: UInt64 = 2_176_782_336

  /// The mark of the node that others reach at this address.
  init(of url: String) {
    var hash = SHA256()
    hash.update(Array(url.utf8))
    let number = hash.finalize().prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    text = (number % Self.count).padded(to: Self.length, radix: 36)
  }

  /// What a name begins with; nil where it is too short to be one.
  init?(ofName name: String) {
    let text = name.prefix(Self.length)
    guard text.utf8.count == Self.length, name.utf8.count > Self.length else { return nil }
    self.text = String(text)
  }
}
