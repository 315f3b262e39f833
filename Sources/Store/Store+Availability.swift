import Dispatch
import Support

/// Whether the journal takes writes: found out by writes, and every second between them.
extension Store {
  /// Says that the journal refuses writes.
  func becomeUnavailable(_ error: JournalError) {
    let reason = journal.publicReason(error)
    let isNew = currentCondition.withLock { condition in
      defer { condition = .unavailable(reason) }
      if case .unavailable = condition { return false }
      return true
    }
    if isNew { notify(.refusesWrites(error.description)) }
  }

  /// Says that the journal takes writes.
  func becomeAvailable() {
    let wasUnavailable = currentCondition.withLock { condition in
      if case .serving = condition { return false }
      defer { condition = .serving }
      if case .unavailable = condition { return true }
      return false
    }
    if wasUnavailable { notify(.takesWrites) }
  }

  /// Looks after the journal, so that no write is needed to find out that it is gone, nor that it is well again: who
  /// asks whether the server is ready, and sends it nothing while it is not, would wait for ever. Called every second.
  func watchJournal() {
    switch condition {
    case .recovering: return
    case .serving:
      guard (try? journal.checkPresence()) == nil else { return }
    case .unavailable: break
    }
    writer.async { [weak self] in self?.tryJournal() }
  }

  /// On the writer: asks the journal whether it would take what it refused. Where it would, the next failure is another
  /// one, and is undone at once.
  private func tryJournal() {
    let bytes = writing.withLock { $0.refusedBytes }
    do throws(JournalError) {
      try journal.probe(bytes: bytes)
      writing.withLock { $0.nextRecovery = .now }
      becomeAvailable()
    } catch {
      if case .unusable = error { return }
      becomeUnavailable(error)
    }
  }
}
