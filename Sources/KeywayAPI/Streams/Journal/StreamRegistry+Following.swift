internal import HTTPServer
internal import KeyValueModel
internal import Locking

extension StreamRegistry {
  /// Opens a stream that follows the journal; see `JournalFeed.open`. Throws `too-many-streams` and `draining`.
  func openFollower(
    of feed: JournalFeed, _ cursor: String?, overflow: OverflowPolicy, present: () -> Revision
  ) throws(Problem) -> EventStream {
    try contents.withLock { contents throws(Problem) in
      let stream = try Self.translating { () throws(StreamHubError) in
        try feed.open(cursor, prelude: Array(retryLine.utf8), overflow: overflow, present: present)
      }
      contents.streams[stream.id] = .journal(secret: random())
      return stream
    }
  }
}
