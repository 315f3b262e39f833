import Support

/// What has been promised so far, by responses and by events, and every promise that was broken. For all threads.
final class PromiseLedger: Sendable {
  /// The figures so far.
  struct Figures: Hashable, Sendable {
    /// The epoch of the store; nil before the first that was seen.
    var epoch: String?
    /// The highest revision that a response or an event named.
    var promised = 0
    /// How many transactions are known to be committed.
    var commits = 0
    var acknowledgements = 0
    /// How many writes without a response were found done.
    var found = 0
    var events = 0
    var resets = 0
    var violations: [String] = []
  }

  private struct Entries {
    var figures = Figures()
    /// The revisions of acknowledged writes, none of which may come twice.
    var revisions: Set<Int> = []
    var round = 0
  }

  /// How many violations are kept; the first say most.
  private static let maximumViolations = 20
  private let entries = Locked(Entries())

  /// The figures of now.
  var figures: Figures { entries.withLock { $0.figures } }

  /// Whether nothing was broken yet.
  var isFaultless: Bool { entries.withLock { $0.figures.violations.isEmpty } }

  /// Says which round it is, for the violations.
  func begin(round: Int) { entries.withLock { $0.round = round } }

  /// Notes a broken promise.
  func violation(_ text: String) {
    entries.withLock {
      guard $0.figures.violations.count < Self.maximumViolations else { return }
      $0.figures.violations.append("round \($0.round): \(text)")
    }
  }

  /// Notes a write that was answered with this cursor.
  func acknowledge(_ cursor: Cursor, by writer: String) {
    let problem: String? = entries.withLock {
      $0.figures.promised = max($0.figures.promised, cursor.revision)
      $0.figures.acknowledgements += 1
      $0.figures.commits += 1
      return $0.revisions.insert(cursor.revision).inserted ? nil : "revision \(cursor.revision) acknowledged twice"
    }
    if let problem { violation("\(writer): \(problem)") }
    check(epoch: cursor.epoch, by: writer)
  }

  /// Notes a write without an answer that was found done, with its revision where that can still be seen.
  func found(_ revision: Int?, by writer: String) {
    let isNew = entries.withLock { entries in
      entries.figures.commits += 1
      entries.figures.found += 1
      guard let revision else { return true }
      return entries.revisions.insert(revision).inserted
    }
    guard let revision, !isNew else { return }
    violation("\(writer): a write without an answer has revision \(revision), which is of another")
  }

  /// Notes the id of an event that a subscriber received.
  func noteEvent(_ cursor: Cursor, of subscriber: String) {
    entries.withLock {
      $0.figures.promised = max($0.figures.promised, cursor.revision)
      $0.figures.events += 1
    }
    check(epoch: cursor.epoch, by: subscriber)
  }

  /// Notes a reset that was allowed.
  func noteReset() { entries.withLock { $0.figures.resets += 1 } }

  /// Notes an epoch, which has to be the same for ever.
  func check(epoch: String, by party: String) {
    let known: String = entries.withLock {
      let known = $0.figures.epoch ?? epoch
      $0.figures.epoch = known
      return known
    }
    if known != epoch { violation("\(party): the epoch is \(epoch) and was \(known)") }
  }
}
