import Locking

/// All deferred answers that are still owed, so that a server that stops can wait for them or give them itself.
final class DeferredResponses: Sendable {
  private struct Debts {
    var answers: [ObjectIdentifier: DeferredResponse] = [:]
    var isClosed = false
  }

  private let debts = Locked(Debts())

  var isEmpty: Bool { debts.withLock { $0.answers.isEmpty } }

  /// Counts an answer whose connection is suspended by now, so that whoever finds it here may resume it. `false` once
  /// closed: nobody will wait for this one, and the caller has to answer it at once.
  func insert(_ answer: DeferredResponse) -> Bool {
    debts.withLock { debts in
      guard !debts.isClosed else { return false }
      debts.answers[ObjectIdentifier(answer)] = answer
      return true
    }
  }

  func remove(_ answer: DeferredResponse) {
    debts.withLock { $0.answers[ObjectIdentifier(answer)] = nil }
  }

  /// Takes no further ones, and gives those that are still owed.
  func close() -> [DeferredResponse] {
    debts.withLock { debts in
      debts.isClosed = true
      return Array(debts.answers.values)
    }
  }
}
