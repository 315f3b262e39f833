/// Makes inputs of good ones, by a few random changes each, or of pieces alone.
package struct Mutator: Sendable {
  private let corpus: [[UInt8]]
  private let pieces: [[UInt8]]
  private let maximumChanges: Int

  /// Bytes that parsers treat apart: ends of ranges, quotation marks, line ends, parts of UTF-8.
  private static let specialBytes: [UInt8] = [
    0, 1, 9, 10, 13, 32, 34, 39, 45, 46, 48, 58, 91, 92, 123, 125, 127, 128, 0xC3, 0xA9, 0xED, 0xF0, 0xFF,
  ]

  /// A mutator of good inputs, which are not empty, and pieces that inputs are made of.
  package init(_ corpus: [String], pieces: [String] = [], maximumChanges: Int = 5) {
    self.init(corpus.map { Array($0.utf8) }, pieces: pieces.map { Array($0.utf8) }, maximumChanges: maximumChanges)
  }

  /// The same, of bytes.
  package init(_ corpus: [[UInt8]], pieces: [[UInt8]] = [], maximumChanges: Int = 5) {
    (self.corpus, self.pieces, self.maximumChanges) = (corpus, pieces, maximumChanges)
  }

  /// An input.
  package func bytes(_ random: inout SplitMix64) -> [UInt8] {
    if !pieces.isEmpty, random.chance(20) {
      return (0..<Int.random(in: 1...40, using: &random)).flatMap { _ in piece(&random) }
    }
    var bytes = corpus.randomElement(using: &random) ?? []
    for _ in 0..<Int.random(in: 1...maximumChanges, using: &random) { change(&bytes, &random) }
    return bytes
  }

  /// Changes bytes in one place.
  package func change(_ bytes: inout [UInt8], _ random: inout SplitMix64) {
    let start = Int.random(in: 0...bytes.count, using: &random)
    let end = min(bytes.count, start + Int.random(in: 0...(random.chance(10) ? 200 : 12), using: &random))
    switch Int.random(in: 0..<8, using: &random) {
    case 0: bytes.removeSubrange(start..<end)
    case 1: bytes.replaceSubrange(start..<end, with: piece(&random))
    case 2: bytes.insert(contentsOf: bytes[start..<end], at: Int.random(in: 0...bytes.count, using: &random))
    case 3: bytes.insert(contentsOf: piece(&random), at: start)
    case 4: bytes.insert(Self.specialBytes.randomElement(using: &random) ?? 0, at: start)
    case 5 where start < bytes.count: bytes[start] = .random(in: 0...255, using: &random)
    case 6 where start < bytes.count: bytes[start] ^= 1 << Int.random(in: 0..<8, using: &random)
    default:
      // The end of another: two halves that were right meet.
      let other = corpus.randomElement(using: &random) ?? []
      bytes.replaceSubrange(start..., with: other.dropFirst(Int.random(in: 0...other.count, using: &random)))
    }
  }

  private func piece(_ random: inout SplitMix64) -> [UInt8] {
    pieces.randomElement(using: &random) ?? [.random(in: 0...255, using: &random)]
  }
}
