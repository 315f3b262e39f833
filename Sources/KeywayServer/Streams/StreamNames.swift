import Crypto
import HTTPServer
import Support

/// Makes and reads the names of streams in URLs: the mark of the node, a number to find the stream by, and 128 bits
/// that nobody can guess, so that no client can change the cells of another's stream or end it.
///
/// The bits are a keyed hash of the number. Nothing has to be remembered for a stream, and no stream's name says
/// anything of another's.
struct StreamNames: Sendable {
  private let key: [UInt64]
  private let mark: String

  /// Names that begin with the mark of this node and depend on 256 random bits.
  init(mark: String, random: () -> UInt64) {
    self.mark = mark
    key = (0..<4).map { _ in random() }
  }

  /// Which node has made a name; nil where no node has made it.
  static func maker(of text: String) -> NodeMark? {
    func areDigits(_ bytes: some Sequence<UInt8>, _ last: Character) -> Bool {
      bytes.allSatisfy { (0x30...0x39).contains($0) || $0 >= 0x61 && $0 <= last.asciiValue ?? 0 }
    }
    guard let mark = NodeMark(ofName: text), areDigits(mark.text.utf8, "z") else { return nil }
    let rest = text.utf8.dropFirst(mark.text.utf8.count)
    guard let dash = rest.firstIndex(of: UInt8(ascii: "-")) else { return nil }
    let (number, hash) = (rest[..<dash], rest[dash...].dropFirst())
    guard (1...13).contains(number.count), areDigits(number, "z"), hash.count == 32, areDigits(hash, "f") else {
      return nil
    }
    return mark
  }

  /// The name of a stream.
  func text(of id: StreamID) -> String {
    var hash = SHA256()
    for word in key + [id.number] { hash.update(word) }
    return "\(mark)\(String(id.number, radix: 36))-\(hash.finalize().prefix(16).hexadecimal)"
  }

  /// The stream that has a name, open or not; nil where no stream can have it.
  func id(of text: String) -> StreamID? {
    guard text.hasPrefix(mark) else { return nil }
    let rest = text.dropFirst(mark.count)
    guard let dash = rest.firstIndex(of: "-"), let number = UInt64(rest[..<dash], radix: 36) else { return nil }
    let id = StreamID(number)
    return self.text(of: id) == text ? id : nil
  }
}
