package import KeyValueModel
import KeyValueObserving

/// What one revision delivers to one stream: changes, what became of live queries, and objects that are gone, in this
/// order.
struct StreamEvent {
  /// The revision.
  let revision: Revision
  /// Who wrote, where it was said.
  var writer: String?
  /// Changes of what is observed.
  var changes: [Change] = []
  /// Live queries, each on its own.
  var queries: [QueryNotification] = []
  /// Objects that cells, or the stream as a whole, have lost.
  var gone: [ObserverEvent.Gone] = []

  /// Whether there is nothing to deliver.
  var isEmpty: Bool { changes.isEmpty && queries.isEmpty && gone.isEmpty }

  /// Nothing yet.
  init(revision: Revision, writer: String? = nil) {
    self.revision = revision
    self.writer = writer
  }

  /// Adds what else the same revision delivers.
  mutating func add(_ other: StreamEvent) {
    changes += other.changes
    queries += other.queries
    gone += other.gone
  }

  /// The part that is for some cells.
  func filtered(_ isIncluded: (_ cell: String?) -> Bool) -> StreamEvent {
    var part = StreamEvent(revision: revision, writer: writer)
    part.changes = changes.filter { isIncluded($0.cell) }
    part.queries = queries.filter { isIncluded($0.cell) }
    part.gone = gone.filter { isIncluded($0.cell) }
    return part
  }

  /// What a commit did to observations.
  init(_ event: ObserverEvent) {
    revision = event.revision
    writer = event.writer
    changes = event.changes
    gone = event.gone
  }
}

/// What a stream, or one of its cells, receives of a live query: a `results` or a `content` event.
struct QueryNotification {
  enum Body {
    /// All rows, as they are in a state.
    case results(QueryResult, any ObjectReader, isInitial: Bool)
    /// What became of them.
    case content(EncodedContent)
  }

  /// The cell, nil where the stream is of nothing else.
  let cell: String?
  /// What the client wants to be given back.
  let context: String?
  let body: Body
  /// How many contents were merged into it, where it stands for some.
  var coalesced: Int?
}

/// What became of a live query's rows, encoded: all of a `content` event but its head, which differs between watchers.
struct EncodedContent {
  /// What became of the rows.
  let content: QueryContent
  /// From `,"count":` on, without the brace that ends the event.
  let text: EventBuffer
}

/// Where an event of a stream stands among those of all revisions: what the hub knows as its position.
///
/// At one revision, what its commit did comes first, and then what else a stream was sent of that state, such as the
/// first state of a cell. The two must differ: a stream that misses only the latter has received the commit.
package struct StreamPosition: Hashable, Comparable, Sendable {
  /// As the hub has it.
  package let rawValue: UInt64

  /// A position that the hub gave back.
  init(rawValue: UInt64) { self.rawValue = rawValue }

  /// What the commit of a revision did.
  static func commit(_ revision: Revision) -> StreamPosition { StreamPosition(rawValue: revision * 2) }

  /// What was sent of the state of a revision, after its commit.
  package static func state(at revision: Revision) -> StreamPosition { StreamPosition(rawValue: revision * 2 + 1) }

  /// The revision.
  var revision: Revision { rawValue / 2 }

  /// The last commit that a stream has received which misses this, and everything after it, and nothing before.
  var lastNotified: Revision { rawValue == 0 ? 0 : (rawValue - 1) / 2 }

  package static func < (left: StreamPosition, right: StreamPosition) -> Bool { left.rawValue < right.rawValue }
}

/// A `context`: text of a client that is given back with every change, unread. Two are equal when their bytes are,
/// where Swift's strings take canonically equivalent ones for the same.
package struct EchoedText: Hashable, Sendable {
  /// The most bytes that a context may have.
  package static let maximumBytes = 1024

  /// The text as it came.
  package let text: String

  /// A context; one that is too long is thrown as `mistake`.
  package init(_ text: String, mistake: ProblemCode) throws(Problem) {
    guard text.utf8.count <= Self.maximumBytes else {
      throw Problem(mistake, "a context has at most \(Self.maximumBytes) bytes")
    }
    self.text = text
  }

  /// Equal byte for byte.
  package static func == (left: EchoedText, right: EchoedText) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Feeds what equality looks at, or less.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(text)
  }
}
