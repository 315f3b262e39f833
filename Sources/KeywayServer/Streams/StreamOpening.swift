import HTTPServer
package import KeyValueModel
import Store

/// A stream that is being opened. What takes long is worked out and encoded while others write; under the publication's
/// lock it is only brought up through the few commits since, so that its first events and what follows belong together.
protocol StreamOpening {
  /// Returns whether so little is left to be worked out that it can be done under the lock, and notes that for `open`.
  /// Notes what `prepare` is to work out where it is not.
  mutating func isReady(_ publication: borrowing Publication) -> Bool

  /// Works out what was missed, up to what was published a moment ago. Runs without a lock. Need not go on once the
  /// client has left.
  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem)

  /// Opens the stream and registers what it observes. A stream that is not ready in spite of all attempts receives its
  /// state later, as a slow reader does. Throws before it has registered anything.
  mutating func open(in registry: StreamRegistry, _ publication: inout Publication) throws(Problem) -> EventStream

  /// Keeps what was worked out for the next stream that resumes alike. Called once, whether or not a stream was opened.
  func keepResults(in store: Store)
}

extension StreamRegistry {
  /// So many attempts are made. A replay that is not ready at the last takes the lock for as long as it needs.
  private static let attempts = 4

  /// Opens a stream. Throws `overloaded` where the client turns out to have left.
  func open(
    _ opening: consuming some StreamOpening, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) -> EventStream {
    var opening = opening
    defer { opening.keepResults(in: store) }
    var number = 1
    while true {
      let isLast = number >= Self.attempts
      let attempt = try store.withPublication { publication throws(Problem) in
        opening.isReady(publication) || isLast
          ? OpeningAttempt.opened(try opening.open(in: self, &publication))
          : .postponed(publication.publishedHistory)
      }
      switch attempt {
      case .opened(let stream): return stream
      case .postponed(let history): try opening.prepare(upTo: history, in: store, isAbandoned)
      }
      guard !isAbandoned() else { throw Problem(.overloaded, "the client has left") }
      number += 1
    }
  }
}

/// What an attempt to open a stream under the publication's lock came to.
private enum OpeningAttempt: Sendable {
  case opened(EventStream)
  /// Too much has been written: more is to be worked out without the lock first, up to here.
  case postponed(PublishedHistory)
}

extension Publication {
  /// Through so many commits a stream is brought up under the lock, where that is not the last attempt.
  private static let commitsUnderLock: Revision = 16

  /// Whether what was worked out up to a revision is brought to the present with little effort, or cannot be any more.
  func isNear(_ revision: Revision) -> Bool {
    snapshot.revision - revision <= Self.commitsUnderLock || revision < snapshot.oldestResumable
  }
}

/// Where a stream begins: with the present state, or where an earlier one ended.
package enum Resumption: Hashable, Sendable {
  /// Why a cursor cannot be resumed.
  package enum Reset: String, Sendable {
    /// The history no longer reaches back so far, or the object did not exist then.
    case compacted
    /// More was missed than `streams.replayBytes` holds.
    case overflow
    /// The cursor is malformed, of another store, or from the future.
    case epoch
  }

  /// Nothing was asked for: the present state.
  case fresh
  /// Everything after this revision.
  case after(Revision)
  /// The cursor is of no use.
  case reset(Reset)

  /// What a cursor means to the store of `epoch` whose history runs from `oldest` to `present`.
  package init(cursor text: String?, epoch: String, oldest: Revision, present: Revision) {
    guard let text else {
      self = .fresh
      return
    }
    guard let cursor = Cursor(text), cursor.epoch == epoch, cursor.revision <= present else {
      self = .reset(.epoch)
      return
    }
    self = cursor.revision < oldest ? .reset(.compacted) : .after(cursor.revision)
  }

  /// The revision to go on from, where the cursor can be resumed.
  package var revision: Revision? { if case .after(let revision) = self { revision } else { nil } }
}
