import Glibc

/// Remembers how far a journal has been acknowledged: written after each sync, never synced itself.
///
/// SQLite ends its log at the first frame that is not whole, and says nothing. After a crash that is right, for what
/// was cut off had not been acknowledged; where acknowledged frames were damaged later, it is a loss. This tells the
/// two apart: what it names was on the disk before it was written, so a journal that ends before it has lost something.
/// After a power failure it may lag behind the journal, and says nothing then.
struct DurableWatermark {
  /// The last acknowledged revision.
  let revision: UInt64
  /// The digest of the chain of records there.
  let digest: JournalDigest

  private static let length = 24

  /// The mark of a file; nil where there is none or it is not whole.
  init?(contentsOf file: SystemFile) throws(JournalError) {
    guard lseek(file.descriptor, 0, SEEK_SET) == 0 else { return nil }
    let bytes = try file.read(Self.length)
    guard bytes.count == Self.length else { return nil }
    let words = bytes.withUnsafeBytes { buffer in
      (0..<3).map { UInt64(littleEndian: buffer.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
    }
    self.init(revision: words[0], digest: JournalDigest(value: words[1]))
    guard check == words[2] else { return nil }
  }

  init(revision: UInt64, digest: JournalDigest) {
    self.revision = revision
    self.digest = digest
  }

  /// Writes the mark over the one before. That it cannot be written is no reason to stop: it then says less than it
  /// could.
  func write(to file: SystemFile) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    for word in [revision, digest.value, check] {
      withUnsafeBytes(of: word.littleEndian) { bytes.append(contentsOf: $0) }
    }
    _ = file.write(bytes, at: 0)
  }

  private var check: UInt64 {
    // Each bit of either counts, and that is enough: the file is one sector, which is written whole or not at all.
    (revision &* 0x9E37_79B9_7F4A_7C15) ^ (digest.value << 32 | digest.value >> 32) ^ 0x6B65_7977_6179_0001
  }
}
