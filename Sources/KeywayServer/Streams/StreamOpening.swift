import HTTPServer
package import KeyValueModel
import Store

/// A stream that is being opened. Whatever takes long is evaluated and encoded without a lock. Under the publication's
/// lock, the result is only brought up to date through the few commits since, so that the first events and the
/// following ones are consistent.
protocol StreamOpening {
  /// Returns true if so little is left to do that it can be done under the lock, and notes that for `open`. Otherwise,
  /// notes what `prepare` has to do.
  mutating func isReady(_ publication: borrowing Publication) -> Bool

  /// Evaluates the missed events up to the state that was published a moment ago. Runs without a lock. It may stop once
  /// the client has left.
  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem)

  /// Opens the stream and registers what it observes. A stream that is not ready in spite of all attempts receives its
  /// state later, as a slow reader does. Throws before anything is registered.
  mutating func open(in registry: StreamRegistry, _ publication: inout Publication) throws(Problem) -> EventStream

  /// Keeps the results for the next stream that resumes from the same place. Called once, whether or not a stream was
  /// opened.
  func keepResults(in store: Store)
}

extension StreamServices {
  /// Returns the first line of every stream, to which more can be appended: the delay before a client reconnects, in
  /// milliseconds, jittered so that many clients do not reconnect at once.
  func prelude() -> EventBuffer {
    var text = encoder.text(limit: .max)
    text.append("retry: \(Int.random(in: 2000..<4000))\n".utf8)
    return text
  }
}

extension StreamRegistry {
  /// The maximum number of attempts. A replay that is not ready at the last one holds the lock for as long as it needs.
  private static let attempts = 4

  /// Opens a stream. Throws `overloaded` if the client has left.
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

/// The outcome of an attempt to open a stream under the publication's lock.
private enum OpeningAttempt: Sendable {
  case opened(EventStream)
  /// Too much has been written: more has to be evaluated without the lock first, up to this history.
  case postponed(PublishedHistory)
}

extension Publication {
  /// The maximum number of commits through which a stream is brought up to date under the lock, except at the last
  /// attempt.
  private static let commitsUnderLock: Revision = 16

  /// Returns true if results as of a revision can be brought up to date with little effort, or not at all any more.
  func isNear(_ revision: Revision) -> Bool {
    snapshot.revision - revision <= Self.commitsUnderLock || revision < snapshot.oldestResumable
  }
}

/// The beginning of a stream: the present state, or the end of an earlier stream.
package enum Resumption: Hashable, Sendable {
  /// The reason why a stream cannot resume from a cursor.
  package enum Reset: String, Sendable {
    /// The history no longer reaches back that far, or the object did not exist then.
    case compacted
    /// More was missed than `streams.replayBytes` holds.
    case overflow
    /// The cursor is malformed, of another store, or ahead of this store.
    case epoch
  }

  /// There is no cursor: the stream begins with the present state.
  case fresh
  /// The stream resumes after this revision.
  case after(Revision)
  /// The stream cannot resume from the cursor.
  case reset(Reset)

  /// Interprets a cursor for the store of `epoch`, whose history runs from `oldest` to `present`.
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

  /// The revision to resume from, or nil if there is none.
  package var revision: Revision? { if case .after(let revision) = self { revision } else { nil } }
}
