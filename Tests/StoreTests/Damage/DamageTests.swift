import Foundation
import Store
import TestKit
import Testing

/// Lost writes, truncated copies, flipped bits: a store starts with its full contents, or is refused.
@Suite("A damaged store")
struct DamageTests {
  /// The number of bytes of each file that are changed after its beginning. `KEYWAY_DAMAGE_BYTES` sets more, at most
  /// all.
  private static let sample = ProcessInfo.processInfo.environment["KEYWAY_DAMAGE_BYTES"].flatMap { Int($0) } ?? 60
  /// The bytes of a file's beginning: as long as the longest header, which is SQLite's.
  private static let head = 100

  /// Returns positions in a file: about half of its beginning, and `sample` of the rest.
  private static func places(_ count: Int, using random: inout SplitMix64) -> [Int] {
    if sample >= count { return Array(0..<count) }
    let beginning = (0..<min(head, count)).filter { _ in sample > 1000 || Bool.random(using: &random) }
    guard count > head else { return beginning }
    return beginning + (0..<sample).map { _ in Int.random(in: head..<count, using: &random) }
  }

  @Test(
    "With any byte of any file changed, it starts with everything or not at all",
    arguments: [false, true], [false, true])
  func changedByte(isCompacted: Bool, hasUnacknowledged: Bool) throws {
    let store = try DamagedStore(isCompacted: isCompacted, hasUnacknowledged: hasUnacknowledged)
    var random = SplitMix64(seed: seed)
    let whole = try store.start()
    #expect(whole.revision == store.last)
    var refusals = 0
    for (path, content) in store.files.sorted(by: { $0.key < $1.key }) {
      for place in Self.places(content.count, using: &random) {
        var damaged = content
        damaged[place] ^= UInt8.random(in: 1...255, using: &random)
        let outcome = try store.start(with: path, as: damaged)
        if case .refused = outcome { refusals += 1 }
        #expect(
          store.allows(outcome, whole: whole),
          "seed \(seed): byte \(place) of \(path): \(content[place]) is \(damaged[place]): \(outcome)")
      }
    }
    // The damage was detected often enough.
    #expect(refusals > 10)
  }

  @Test(
    "With any file truncated at any place, or missing, it starts with everything or not at all",
    arguments: [false, true], [false, true])
  func cutOff(isCompacted: Bool, hasUnacknowledged: Bool) throws {
    let store = try DamagedStore(isCompacted: isCompacted, hasUnacknowledged: hasUnacknowledged)
    var random = SplitMix64(seed: seed)
    let whole = try store.start()
    for (path, content) in store.files.sorted(by: { $0.key < $1.key }) {
      let missing = try store.start(with: path, as: nil)
      #expect(store.allows(missing, whole: whole), "\(path) is missing: \(missing)")
      for length in Self.places(content.count, using: &random) {
        let outcome = try store.start(with: path, as: Array(content[..<length]))
        #expect(
          store.allows(outcome, whole: whole),
          "seed \(seed): \(path) has \(length) of \(content.count) bytes: \(outcome)")
      }
    }
  }
}
