import Dispatch
import Glibc
import Support

/// The position up to which a journal has been acknowledged: written after each sync, never synced itself.
///
/// SQLite silently ends its log at the first incomplete frame. After a crash that is correct, because the lost part was
/// not acknowledged; if acknowledged frames were damaged later, it is a loss. The mark distinguishes the two cases: the
/// revision that it names was on the disk before the mark was written, so a journal that ends before it has lost
/// something. After a power failure the mark may lag behind the journal, and then proves nothing.
struct DurableWatermark {
  /// The last acknowledged revision.
  let revision: UInt64
  /// The digest of the chain of records there.
  let digest: JournalDigest

  private static let length = 24

  /// Reads the mark from a file; nil if there is none or it is damaged.
  init?(contentsOf file: SystemFile) throws(JournalError) {
    guard lseek(file.descriptor, 0, SEEK_SET) == 0 else { return nil }
    var bytes = try file.read(Self.length)[...]
    guard let revision = bytes.takeInteger(UInt64.self), let digest = bytes.takeInteger(UInt64.self) else { return nil }
    self.init(revision: revision, digest: JournalDigest(value: digest))
    guard bytes.takeInteger(UInt64.self) == check else { return nil }
  }

  /// Reads the mark of a store; nil if there is none or it is damaged.
  static func read(_ layout: JournalLayout) -> DurableWatermark? {
    // A server may be writing it right now; a mark that is half old and half new is complete at the next attempt.
    for _ in 0..<3 {
      if let file = try? SystemFile(layout.mark, O_RDONLY), let mark = try? DurableWatermark(contentsOf: file) {
        return mark
      }
      usleep(1000)
    }
    return nil
  }

  init(revision: UInt64, digest: JournalDigest) {
    self.revision = revision
    self.digest = digest
  }

  /// Overwrites the mark. A write error is ignored: the mark then proves less than it could.
  func write(to file: SystemFile) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    for word in [revision, digest.value, check] { bytes.append(littleEndian: word) }
    _ = file.write(bytes, at: 0)
  }

  private var check: UInt64 {
    // Each bit of either value counts, which suffices: the file fits in one sector, which is written completely or not
    // at all.
    (revision &* 0x9E37_79B9_7F4A_7C15) ^ (digest.value << 32 | digest.value >> 32) ^ 0x6B65_7977_6179_0001
  }
}

/// Syncs a file soon after it was written, for journals that are not synced at each write.
///
/// `isDirty` is all that changes. The work is done on one serial queue.
final class LogFlusher: Sendable {
  private let path: String
  private let milliseconds: Int
  private let queue = DispatchQueue(label: "keyway.journal.flusher", qos: .userInitiated)
  private let isDirty = Locked(false)
  private let isStopped = Locked(false)
  private let target = Locked<Target?>(nil)

  /// The owner of the file.
  struct Target: Sendable {
    /// Returns the position that a sync starting now covers.
    let position: @Sendable () -> DurableWatermark?
    /// Receives the position that a sync has covered; nil if the sync failed.
    let settle: @Sendable (DurableWatermark?) -> Void
  }

  init(path: String, milliseconds: Int) {
    self.path = path
    self.milliseconds = milliseconds
  }

  /// Sets the target that is notified after each sync.
  func start(_ target: Target) {
    self.target.withLock { $0 = target }
  }

  /// Notes that something was written, and schedules a sync at the end of the window.
  func note() {
    let isFirst = isDirty.withLock { isDirty in
      defer { isDirty = true }
      return !isDirty
    }
    if isFirst { queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { self.flush() } }
  }

  private func flush() {
    guard !isStopped.withLock({ $0 }), let target = target.withLock({ $0 }) else { return }
    // Before the sync: data written during it may not be covered, and schedules the next sync.
    isDirty.withLock { $0 = false }
    let position = target.position()
    do throws(JournalError) {
      try SystemFile(path, O_RDWR).sync()
      target.settle(position)
    } catch {
      target.settle(nil)
    }
  }

  /// Stops the flusher; the owner of the file is responsible for data that is not synced yet.
  func stop() {
    isStopped.withLock { $0 = true }
    queue.sync {}
    target.withLock { $0 = nil }
  }
}
