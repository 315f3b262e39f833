import Journal
import Locking

extension Revocations {
  /// Reads them again where another node has changed them. Where they cannot be read, those that were read last count
  /// until the next attempt.
  func refresh() {
    guard let shared = journal as? any SharedJournal else { return }
    let change = shared.revocationChanges
    guard seenChange.withLock({ $0 != change }) else { return }
    changing.withLock { _ in
      guard let kept = try? shared.revocations() else { return }
      let times = Dictionary(kept.map { ($0.key, $0.milliseconds) }) { max($0, $1) }
      self.times.withLock { $0 = times }
      seenChange.withLock { $0 = change }
    }
  }
}
