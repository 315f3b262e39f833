import Support
import TestKit

/// The promises made so far by responses and events, and every one that was broken. For use by all threads.
final class PromiseLedger: Sendable {
  /// The figures so far.
  struct Figures: Hashable, Sendable {
    /// The epoch of the store; nil before one was seen.
    var epoch: String?
    /// The highest revision named by a response or an event.
    var promised = 0
    /// The number of transactions known to be committed.
    var commits = 0
    var acknowledgements = 0
    /// The number of writes without a response that were found done.
    var found = 0
    var events = 0
    var resets = 0
    var violations: [String] = []
  }

  private struct Entries {
    var figures = Figures()
    /// The revisions of acknowledged writes, which must be unique.
    var revisions: Set<Int> = []
    var round = 0
  }

  /// The maximum number of violations that are kept; the first ones are the most informative.
  private static let maximumViolations = 20
  private let entries = Locked(Entries())

  /// The present figures.
  var figures: Figures { entries.withLock { $0.figures } }

  /// True if no promise was broken yet.
  var isFaultless: Bool { entries.withLock { $0.figures.violations.isEmpty } }

  /// Sets the number of the round, for the violations.
  func begin(round: Int) { entries.withLock { $0.round = round } }

  /// Notes a broken promise.
  func violation(_ text: String) {
    entries.withLock {
      guard $0.figures.violations.count < Self.maximumViolations else { return }
      $0.figures.violations.append("round \($0.round): \(text)")
    }
  }

  /// Notes a write that was answered with a cursor.
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

  /// Notes a write without an answer that was found done, with its revision if that is still visible.
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

  /// Notes an epoch, which must never change.
  func check(epoch: String, by party: String) {
    let known: String = entries.withLock {
      let known = $0.figures.epoch ?? epoch
      $0.figures.epoch = known
      return known
    }
    if known != epoch { violation("\(party): the epoch is \(epoch) and was \(known)") }
  }
}

/// A violation of the specification by something that a stream sent or did not send.
struct BrokenPromise: Error, Hashable, Sendable, CustomStringConvertible {
  /// A description of the violation.
  var description: String

  init(_ description: String) { self.description = description }
}

/// A parsed cursor: the store's epoch and a revision.
struct Cursor: Hashable, Sendable, CustomStringConvertible {
  /// The epoch of the store.
  var epoch: String
  /// The revision.
  var revision: Int

  /// Creates a cursor.
  init(epoch: String, revision: Int) {
    self.epoch = epoch
    self.revision = revision
  }

  /// Parses a cursor in wire format; nil if the text is not one.
  init?(_ text: String) {
    guard let dash = text.lastIndex(of: "-"), let revision = Int(text[text.index(after: dash)...]) else { return nil }
    self.init(epoch: String(text[..<dash]), revision: revision)
  }

  /// Creates the cursor of the commit that a response acknowledges, or of the state that it shows; nil if it has none.
  init?(of response: WireResponse) {
    guard let cursor = response["Keyway-Cursor"].flatMap(Cursor.init) else { return nil }
    self = cursor
  }

  /// The cursor in wire format.
  var description: String { "\(epoch)-\(revision)" }
}

extension LoopbackError {
  /// True if a server that is merely recovering, draining or killed never causes this error.
  var isOfBrokenServer: Bool {
    switch reason {
    case .timedOut, .malformed: true
    case .unexpectedStatus(let status): status != 503
    case .connectionRefused, .connectionReset, .connectionClosed, .interrupted, .failed: false
    }
  }
}
