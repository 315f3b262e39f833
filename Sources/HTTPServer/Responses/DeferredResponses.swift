import Support

/// All deferred responses that are still owed, so that a server that stops can wait for them or give them itself.
final class DeferredResponses: Sendable {
  private struct Owed {
    /// In any order; each knows its place.
    var answers: [DeferredResponse] = []
    var isClosed = false
  }

  private let owed = Locked(Owed())

  var isEmpty: Bool { owed.withLock { $0.answers.isEmpty } }

  /// Counts a response whose connection is suspended by now, so that a thread that finds it here may resume it. `false`
  /// once closed: a stop will not wait for this one, and the caller has to respond at once.
  func insert(_ answer: DeferredResponse) -> Bool {
    owed.withLock { owed in
      guard !owed.isClosed else { return false }
      answer.place = owed.answers.count
      owed.answers.append(answer)
      return true
    }
  }

  func remove(_ answer: DeferredResponse) {
    owed.withLock { owed in
      let place = answer.place
      guard owed.answers.indices.contains(place), owed.answers[place] === answer else { return }
      owed.answers.swapAt(place, owed.answers.count - 1)
      owed.answers.removeLast()
      if place < owed.answers.count { owed.answers[place].place = place }
      if owed.answers.capacity > 4 * owed.answers.count + 64 { owed.answers = Array(owed.answers[...]) }
    }
  }

  /// Takes no further ones, and gives those that are still owed.
  func close() -> [DeferredResponse] {
    owed.withLock { owed in
      owed.isClosed = true
      return owed.answers
    }
  }
}
