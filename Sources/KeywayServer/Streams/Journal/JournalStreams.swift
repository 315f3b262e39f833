import HTTPServer
import KeyValueModel
import Store
import Support

/// Streams that follow the journal share its feed, which knows how far each of them is.
extension JournalFeed: SelfPacedSubscription {
  func describe(in body: inout JSONObject) {
    body["kind"] = .string("journal")
    body["observations"] = .integer(0)
  }

  func beginLag(_ id: StreamID, firstMissed: StreamPosition) {
    state.withLock { $0.table.beginLag(id, lastNotified: firstMissed.lastNotified) }
  }

  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {
    remove(id)
  }
}

/// Opens streams that follow the journal.
struct JournalStreams: Sendable {
  private let registry: StreamRegistry
  private let feed: JournalFeed

  init(_ registry: StreamRegistry, _ feed: JournalFeed) {
    self.registry = registry
    self.feed = feed
  }

  /// Everything up to a revision is published. Any thread; costs next to nothing.
  func commitsWerePublished(upTo revision: Revision) { feed.commitsWerePublished(upTo: revision) }

  /// Opens a stream that goes on from a cursor, or from the present. Throws `too-many-streams` and `draining`.
  func open(
    _ cursor: String?, overflow: OverflowPolicy, for client: ClientAddress, in store: Store
  ) throws(Problem) -> EventStream {
    try registry.contents.withLock { contents throws(Problem) in
      let stream = try feed.open(cursor, overflow: overflow, for: client) { store.snapshot.revision }
      contents.subscriptions[stream.id] = feed
      return stream
    }
  }
}
