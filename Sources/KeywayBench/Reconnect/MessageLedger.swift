import Locking

/// What was published of each object.
final class MessageLedger: Sendable {
  /// How much that is.
  struct Page: Sendable {
    /// How many messages each object was given.
    var published: [Int]
    /// The message that each object was given last.
    var last: [UInt64]
  }

  private let page: Locked<Page>

  init(objects: Int) {
    page = Locked(Page(published: Array(repeating: 0, count: objects), last: Array(repeating: 0, count: objects)))
  }

  /// What it is now.
  var current: Page { page.withLock { $0 } }

  /// An object was given a message.
  func note(_ object: Int, _ number: UInt64) {
    page.withLock {
      $0.published[object] += 1
      $0.last[object] = number
    }
  }
}
