import Dispatch
import Glibc
import Support

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
    var bytes = try file.read(Self.length)[...]
    guard let revision = bytes.takeInteger(UInt64.self), let digest = bytes.takeInteger(UInt64.self) else { return nil }
    self.init(revision: revision, digest: JournalDigest(value: digest))
    guard bytes.takeInteger(UInt64.self) == check else { return nil }
  }

  /// The mark of a store; nil where there is none or it is not whole.
  static func read(_ layout: JournalLayout) -> DurableWatermark? {
    // A server may write it just now: what is half of each is whole the next time.
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

  /// Writes the mark over the one before. That it cannot be written is no reason to stop: it then says less than it
  /// could.
  func write(to file: SystemFile) {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.length)
    for word in [revision, digest.value, check] { bytes.append(littleEndian: word) }
    _ = file.write(bytes, at: 0)
  }

  private var check: UInt64 {
    // Each bit of either counts, and that is enough: the file is one sector, which is written whole or not at all.
    (revision &* 0x9E37_79B9_7F4A_7C15) ^ (digest.value << 32 | digest.value >> 32) ^ 0x6B65_7977_6179_0001
  }
}

/// What is found when a journal is opened: how far it reaches, after an end that was never acknowledged and is not
/// whole has been cut off.
struct JournalOpening {
  private(set) var last: UInt64
  private(set) var tip: JournalDigest
  private(set) var remarks: [String] = []

  /// Looks at the end of the journal. Throws `damaged` where something that was acknowledged is not there.
  init(_ database: JournalDatabase, _ head: JournalDatabase.Head, _ layout: JournalLayout) throws(JournalError) {
    last = max(head.base, try database.lastRevision() ?? head.base)
    tip = head.baseDigest
    guard let mark = try Self.mark(layout, &remarks) else {
      // What was acknowledged is not known: everything has to be as it was written.
      tip = try database.requireDigest(at: last, head)
      return
    }
    guard mark.revision <= last else {
      throw .damaged(
        place: layout.database,
        reason: "it ends with revision \(last), and \(mark.revision) was acknowledged")
    }
    // A mark from the base or before it was left by a power failure, and says no more than the base does.
    let known = max(mark.revision, head.base)
    tip = try database.requireDigest(at: known, head)
    if mark.revision > head.base, tip != mark.digest {
      throw .damaged(
        place: "\(layout.database), revision \(known)", reason: "it is not what was acknowledged")
    }
    try checkUnacknowledged(after: known, database, head)
  }

  /// What comes after the last acknowledged record is taken as far as it is whole.
  private mutating func checkUnacknowledged(
    after known: UInt64, _ database: JournalDatabase, _ head: JournalDatabase.Head
  ) throws(JournalError) {
    guard last > known else { return }
    var (end, link) = (known, tip)
    do throws(JournalError) {
      _ = try database.read(after: known, tip, through: last) { record, digest in
        (end, link) = (record.revision, digest)
        return true
      }
    } catch {
      guard case .damaged(let place, let reason) = error else { throw error }
      remarks.append("cut off after revision \(end), which nobody was told of: \(place): \(reason)")
      try database.write(head, removingAfter: end)
    }
    (last, tip) = (end, link)
  }

  private static func mark(
    _ layout: JournalLayout, _ remarks: inout [String]
  ) throws(JournalError) -> DurableWatermark? {
    guard SystemFile.exists(layout.mark) else { return nil }
    let file = try SystemFile(layout.mark, O_RDONLY)
    let mark = try DurableWatermark(contentsOf: file)
    if mark == nil {
      remarks.append("\(layout.mark): it is not whole; how far the journal was acknowledged is not known")
    }
    return mark
  }
}

/// Syncs a file soon after it was written, for journals that do not do so at each write.
///
/// `isDirty` is all that changes. The work is done on one serial queue.
final class LogFlusher: Sendable {
  private let path: String
  private let milliseconds: Int
  private let queue = DispatchQueue(label: "keyway.journal.flusher", qos: .userInitiated)
  private let isDirty = Locked(false)
  private let isStopped = Locked(false)
  private let target = Locked<Target?>(nil)

  /// Whose file it is.
  struct Target: Sendable {
    /// What a sync that begins now will have on the disk.
    let position: @Sendable () -> DurableWatermark?
    /// What a sync had on the disk; nil where it failed.
    let settle: @Sendable (DurableWatermark?) -> Void
  }

  init(path: String, milliseconds: Int) {
    self.path = path
    self.milliseconds = milliseconds
  }

  /// From now on tells after each sync what came of it.
  func start(_ target: Target) {
    self.target.withLock { $0 = target }
  }

  /// Something was written: it is on the disk when the window is over.
  func note() {
    let isFirst = isDirty.withLock { isDirty in
      defer { isDirty = true }
      return !isDirty
    }
    if isFirst { queue.asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { self.flush() } }
  }

  private func flush() {
    guard !isStopped.withLock({ $0 }), let target = target.withLock({ $0 }) else { return }
    // Before the sync: what is written meanwhile may miss it, and asks for the next one.
    isDirty.withLock { $0 = false }
    let position = target.position()
    do throws(JournalError) {
      try SystemFile(path, O_RDWR).sync()
      target.settle(position)
    } catch {
      target.settle(nil)
    }
  }

  /// Ends it; what is not synced yet is left to the owner of the file.
  func stop() {
    isStopped.withLock { $0 = true }
    queue.sync {}
    target.withLock { $0 = nil }
  }
}
