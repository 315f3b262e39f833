import Support

/// What was published of each value.
final class MessageLedger: Sendable {
  /// How much that is.
  struct Page: Sendable {
    /// How many messages each value was set to.
    var published: [Int]
    /// The number of the message that each value was set to last.
    var last: [UInt64]

    /// How many messages there were.
    var total: Int { published.reduce(0, +) }
  }

  private let page: Locked<Page>

  /// A ledger of so many values.
  init(values: Int) {
    page = Locked(Page(published: Array(repeating: 0, count: values), last: Array(repeating: 0, count: values)))
  }

  /// What it is now.
  var current: Page { page.withLock { $0 } }

  /// Notes that a value was set to a message.
  func note(_ value: Int, _ number: UInt64) {
    page.withLock {
      $0.published[value] += 1
      $0.last[value] = number
    }
  }
}
