import Dispatch
import Glibc
import Support

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
