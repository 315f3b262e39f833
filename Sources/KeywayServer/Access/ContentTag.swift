import Crypto
import Support

/// The `ETag` of an answer to someone who may not read everything: it is made of the answer, so that it does not move
/// for what is left out of it.
struct ContentTag: Hashable, Sendable {
  /// How many bytes of the digest are in a tag.
  private static let byteCount = 16

  /// The tag without its quotation marks. It is no cursor: those end with a number.
  let text: String

  /// The tag of an answer's body.
  init(of bytes: [UInt8], epoch: String) {
    var hash = SHA256()
    hash.update(bytes)
    text = "\(epoch)-c\(hash.finalize().prefix(Self.byteCount).hexadecimal)"
  }
}
