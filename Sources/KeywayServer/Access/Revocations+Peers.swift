import Store
import Support

extension Revocations {
  /// Reads them again where another node has changed them. Where they cannot be read, those that were read last count
  /// until the next attempt.
  func refresh() {
    guard let shared = journal as? any SharedJournal else { return }
    let change = shared.revocationChanges
    guard seenChange.withLock({ $0 != change }) else { return }
    changing.withLock { _ in
      guard let kept = try? Self.times(in: shared) else { return }
      times.withLock { $0 = kept }
      seenChange.withLock { $0 = change }
    }
  }
}
