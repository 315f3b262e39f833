import Support
import TestKit

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

/// What a stream sent, or did not send, against the specification.
struct BrokenPromise: Error, Hashable, Sendable, CustomStringConvertible {
  /// What it is.
  var description: String

  init(_ description: String) { self.description = description }
}

/// A cursor taken apart: the store's epoch and a revision.
struct Cursor: Hashable, Sendable, CustomStringConvertible {
  /// The epoch of the store.
  var epoch: String
  /// The revision.
  var revision: Int

  /// A cursor with these parts.
  init(epoch: String, revision: Int) {
    self.epoch = epoch
    self.revision = revision
  }

  /// A cursor as the wire has it; nil for what is none.
  init?(_ text: String) {
    guard let dash = text.lastIndex(of: "-"), let revision = Int(text[text.index(after: dash)...]) else { return nil }
    self.init(epoch: String(text[..<dash]), revision: revision)
  }

  /// The cursor of the commit that a response acknowledges, or of the state that it shows; nil where it has none.
  init?(of response: WireResponse) {
    guard let cursor = response["Keyway-Cursor"].flatMap(Cursor.init) else { return nil }
    self = cursor
  }

  /// As the wire has it.
  var description: String { "\(epoch)-\(revision)" }
}

extension LoopbackError {
  /// Whether a server that only recovers, drains or is killed never causes it.
  var isOfBrokenServer: Bool {
    switch reason {
    case .timedOut, .malformed: true
    case .unexpectedStatus(let status): status != 503
    case .connectionRefused, .connectionReset, .connectionClosed, .interrupted, .failed: false
    }
  }
}
