import TestKit
import Testing

@Suite("A store with any damage")
struct DamageFuzzTests {
  @Test(
    "With any damage to one file, it starts with everything or not at all",
    arguments: [false, true], [false, true])
  func anyDamage(isCompacted: Bool, hasUnacknowledged: Bool) throws {
    let store = try DamagedStore(isCompacted: isCompacted, hasUnacknowledged: hasUnacknowledged)
    let whole = try store.start()
    let files = store.files.sorted { $0.key < $1.key }
    let mutator = Mutator(files.map(\.value))
    let failure = Fuzzer("journal files", rounds: 40).run(
      make: { random in
        let (path, content) = files[Int.random(in: files.indices, using: &random)]
        var damaged = content
        for _ in 0..<Int.random(in: 1...4, using: &random) { Self.damage(&damaged, mutator, &random) }
        return (path, damaged)
      },
      describe: { "\($0.0) of \($0.1.count) bytes" },
      check: { path, damaged in
        let outcome = try store.start(with: path, as: damaged)
        return store.allows(outcome, whole: whole) ? nil : "\(path): \(outcome)"
      })
    #expect(failure == nil, "\(failure?.description ?? "")")
  }

  /// Damages bytes as disks and copies do: with blocks of zeros, misplaced blocks, and any other change.
  private static func damage(_ bytes: inout [UInt8], _ mutator: Mutator, _ random: inout SplitMix64) {
    let block = [512, 4_096].randomElement(using: &random) ?? 512
    guard bytes.count >= 2 * block, random.chance(60) else { return mutator.change(&bytes, &random) }
    let target = Int.random(in: 0..<bytes.count / block, using: &random) * block
    if random.chance(50) {
      for index in target..<target + block { bytes[index] = 0 }
    } else {
      let source = Int.random(in: 0..<bytes.count / block, using: &random) * block
      bytes.replaceSubrange(target..<target + block, with: Array(bytes[source..<source + block]))
    }
  }
}
