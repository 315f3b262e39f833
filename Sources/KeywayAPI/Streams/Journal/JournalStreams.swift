package import HTTPServer
import KeyValueModel
import Locking
package import ModelStore

/// Streams that follow the journal share its feed, which knows how far each of them is.
extension JournalFeed: Subscription {
  func describe(in body: inout JSONObject) {
    body["kind"] = .string("journal")
    body["observations"] = .integer(0)
  }

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
    state.withLock { $0.table.beginLag(id, lastNotified: firstMissed.lastNotified) }
  }

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> (@Sendable () -> Void)? {
    catchUpLater(id)
    return nil
  }

  func end(_ id: StreamID, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication) {
    remove(id)
  }
}

/// Opens streams that follow the journal.
package struct JournalStreams: Sendable {
  private let registry: StreamRegistry
  private let feed: JournalFeed

  init(_ registry: StreamRegistry, _ feed: JournalFeed) {
    self.registry = registry
    self.feed = feed
  }

  /// Everything up to a revision is published. Any thread; costs next to nothing.
  func commitsWerePublished(upTo revision: Revision) { feed.commitsWerePublished(upTo: revision) }

  /// Opens a stream that goes on from a cursor, or from the present. Throws `too-many-streams` and `draining`.
  package func open(_ cursor: String?, overflow: OverflowPolicy, in store: Store) throws(Problem) -> EventStream {
    try registry.contents.withLock { contents throws(Problem) in
      let stream = try feed.open(cursor, overflow: overflow) { store.snapshot.revision }
      contents.subscriptions[stream.id] = feed
      return stream
    }
  }
}
