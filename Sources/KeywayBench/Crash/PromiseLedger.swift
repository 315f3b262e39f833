import Locking

/// What has been promised so far, by responses and by events, and every promise that was broken. For all threads.
final class PromiseLedger: Sendable {
  private struct Entries {
    var epoch: String?
    /// The highest revision that a response named, and that an event named.
    var acknowledged = 0
    var received = 0
    /// The revisions of acknowledged writes, none of which may come twice.
    var revisions: Set<Int> = []
    /// How many transactions are known to be committed.
    var commits = 0
    var acknowledgements = 0
    var found = 0
    var events = 0
    var resets = 0
    var violations: [String] = []
    var round = 0
  }

  /// How many violations are kept; the first say most.
  private static let maximumViolations = 20
  private let entries = Locked(Entries())

  /// The figures so far.
  struct Figures: Hashable, Sendable {
    var epoch: String?
    /// The highest revision that a response or an event named.
    var promised: Int
    var commits: Int
    var acknowledgements: Int
    /// How many writes without a response were found done.
    var found: Int
    var events: Int
    var resets: Int
    var violations: [String]
  }

  var figures: Figures {
    entries.withLock {
      Figures(
        epoch: $0.epoch, promised: max($0.acknowledged, $0.received), commits: $0.commits,
        acknowledgements: $0.acknowledgements, found: $0.found, events: $0.events, resets: $0.resets,
        violations: $0.violations)
    }
  }

  /// Whether nothing was broken yet.
  var isFaultless: Bool { entries.withLock { $0.violations.isEmpty } }

  /// Says which round it is, for the violations.
  func begin(round: Int) { entries.withLock { $0.round = round } }

  /// Notes a broken promise.
  func violation(_ text: String) {
    entries.withLock {
      guard $0.violations.count < Self.maximumViolations else { return }
      $0.violations.append("round \($0.round): \(text)")
    }
  }

  /// Notes a write that was answered with this cursor.
  func acknowledge(_ cursor: Cursor, by writer: String) {
    let problem: String? = entries.withLock {
      $0.acknowledged = max($0.acknowledged, cursor.revision)
      $0.acknowledgements += 1
      $0.commits += 1
      return $0.revisions.insert(cursor.revision).inserted ? nil : "revision \(cursor.revision) acknowledged twice"
    }
    if let problem { violation("\(writer): \(problem)") }
    check(epoch: cursor.epoch, by: writer)
  }

  /// Notes a write without an answer that was found done, with its revision where that can still be seen.
  func found(_ revision: Int?, by writer: String) {
    let isNew = entries.withLock { entries in
      entries.commits += 1
      entries.found += 1
      guard let revision else { return true }
      return entries.revisions.insert(revision).inserted
    }
    guard let revision, !isNew else { return }
    violation("\(writer): a write without an answer has revision \(revision), which is of another")
  }

  /// Notes the id of an event that a subscriber received.
  func noteEvent(_ cursor: Cursor, of subscriber: String) {
    entries.withLock {
      $0.received = max($0.received, cursor.revision)
      $0.events += 1
    }
    check(epoch: cursor.epoch, by: subscriber)
  }

  /// Notes a reset that was allowed.
  func noteReset() { entries.withLock { $0.resets += 1 } }

  /// Notes an epoch, which has to be the same for ever.
  func check(epoch: String, by party: String) {
    let known: String = entries.withLock {
      let known = $0.epoch ?? epoch
      $0.epoch = known
      return known
    }
    if known != epoch { violation("\(party): the epoch is \(epoch) and was \(known)") }
  }
}
