import Support

/// Makes the identifiers of stores and objects.
enum Identifiers {
  /// Returns six letters and digits, first a letter: two stores have the same ones once in a billion times.
  static func makeEpoch(random: UInt64) -> String {
    let letters = Array("abcdefghijkmnpqrstuvwxyz")
    let characters = letters + Array("23456789")
    var rest = random
    var word = ""
    for position in 0..<6 {
      let alphabet = position == 0 ? letters : characters
      word.append(alphabet[Int(rest % UInt64(alphabet.count))])
      rest /= UInt64(alphabet.count)
    }
    return word
  }

  /// Returns a UUID of version 7 (RFC 9562 §5.7), which begins with the time, so that ids grow. The form cannot express
  /// a time before 1970; 1970 takes its place.
  static func makeUUIDv7(milliseconds: Int64, random: (UInt64, UInt64)) -> String {
    let high = UInt64(max(0, milliseconds)) << 16 | 0x7000 | (random.0 & 0x0FFF)
    let low = 0x8000_0000_0000_0000 | (random.1 & 0x3FFF_FFFF_FFFF_FFFF)
    let digits = high.padded(to: 16, radix: 16) + low.padded(to: 16, radix: 16)
    let groups = [0..<8, 8..<12, 12..<16, 16..<20, 20..<32]
    return groups.map { String(Array(digits)[$0]) }.joined(separator: "-")
  }
}

/// Makes ids for the new objects of one request, and records them.
final class NewIDs {
  private let makeID: () -> String
  private(set) var ids: Set<String> = []

  init(_ makeID: @escaping () -> String) {
    self.makeID = makeID
  }

  /// Returns an id that no object has.
  func make() -> String {
    let id = makeID()
    ids.insert(id)
    return id
  }
}
