package import KeyValueModel
import KeyValueObserving

/// The events of one revision for one stream: changes, notifications of live queries, and objects that are gone, in
/// this order.
struct StreamEvent {
  /// The revision.
  let revision: Revision
  /// The name of the writer, if the write named one.
  var writer: String?
  /// The changes of observations.
  var changes: [Change] = []
  /// The notifications of live queries, one for each query.
  var queries: [QueryNotification] = []
  /// The objects that cells, or the stream as a whole, observed and that no longer exist.
  var gone: [ObserverEvent.Gone] = []

  /// True if there is nothing to deliver.
  var isEmpty: Bool { changes.isEmpty && queries.isEmpty && gone.isEmpty }

  /// Creates an empty event.
  init(revision: Revision, writer: String? = nil) {
    self.revision = revision
    self.writer = writer
  }

  /// Adds further events of the same revision.
  mutating func add(_ other: StreamEvent) {
    changes += other.changes
    queries += other.queries
    gone += other.gone
  }

  /// Returns the part for some cells.
  func filtered(_ isIncluded: (_ cell: String?) -> Bool) -> StreamEvent {
    var part = StreamEvent(revision: revision, writer: writer)
    part.changes = changes.filter { isIncluded($0.cell) }
    part.queries = queries.filter { isIncluded($0.cell) }
    part.gone = gone.filter { isIncluded($0.cell) }
    return part
  }

  /// Creates the event of an observer, without live queries.
  init(_ event: ObserverEvent) {
    revision = event.revision
    writer = event.writer
    changes = event.changes
    gone = event.gone
  }
}

/// A notification of a live query for a stream or one of its cells: a `results` or a `content` event.
struct QueryNotification {
  enum Body {
    /// All rows, in a state.
    case results(QueryResult, any ObjectReader, isInitial: Bool)
    /// The changes of rows.
    case content(EncodedContent)
  }

  /// The cell, or nil if the stream as a whole is of the live query.
  let cell: String?
  /// The text of the client that the event repeats.
  let context: String?
  let body: Body
  /// The number of contents that were merged into it, or nil if none were.
  var coalesced: Int?
}

/// The changes of a live query's rows, encoded: a whole `content` event except its head, which differs between
/// watchers.
struct EncodedContent {
  /// The changes of the rows.
  let content: QueryContent
  /// The text from `,"count":` on, without the brace that ends the event.
  let text: EventBuffer
}

/// The position of an event of a stream among the events of all revisions. The hub stores it as a number.
///
/// At one revision, the events of its commit come first, and then others about that state, such as the first state of a
/// cell. The two must differ: a stream that misses only the latter has received the commit.
package struct StreamPosition: Hashable, Comparable, Sendable {
  /// The number in the hub.
  package let rawValue: UInt64

  /// Creates a position from a number of the hub.
  init(rawValue: UInt64) { self.rawValue = rawValue }

  /// Returns the position of a revision's commit.
  static func commit(_ revision: Revision) -> StreamPosition { StreamPosition(rawValue: revision * 2) }

  /// Returns the position of events about the state of a revision, after its commit.
  package static func state(at revision: Revision) -> StreamPosition { StreamPosition(rawValue: revision * 2 + 1) }

  /// The revision.
  var revision: Revision { rawValue / 2 }

  /// The revision of the last commit received by a stream that misses this position and everything after it, and
  /// nothing before.
  var lastNotified: Revision { rawValue == 0 ? 0 : (rawValue - 1) / 2 }

  package static func < (left: StreamPosition, right: StreamPosition) -> Bool { left.rawValue < right.rawValue }
}

/// A `context`: a text of a client that every change repeats, unread. Two are equal if their bytes are, while Swift's
/// strings are equal if they are canonically equivalent.
package struct EchoedText: Hashable, Sendable {
  /// The maximum number of bytes of a context.
  package static let maximumBytes = 1024

  /// The text as received.
  package let text: String

  /// Creates a context. Throws a problem with the code `mistake` if the text is too long.
  package init(_ text: String, mistake: ProblemCode) throws(Problem) {
    guard text.utf8.count <= Self.maximumBytes else {
      throw Problem(mistake, "a context has at most \(Self.maximumBytes) bytes")
    }
    self.text = text
  }

  /// Compares the texts byte for byte.
  package static func == (left: EchoedText, right: EchoedText) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Hashes the text. Equal contexts have equal hashes; contexts that differ only by canonical equivalence have too.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(text)
  }
}
