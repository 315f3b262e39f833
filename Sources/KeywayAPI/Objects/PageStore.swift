import DequeModule
import KeyValueModel
import Locking
import ModelStore

/// Fetches whose next page a client may still ask for. All pages of a fetch show one state, so the state is kept: for a
/// while, and for so many fetches; the oldest make room. A page that is no longer kept is `page-expired`.
package final class PageStore: Sendable {
  /// What a fetch found.
  struct Rows: Sendable {
    /// All of it, in order.
    let references: [Reference]
    /// `,"sections":[…]` of all of it; nothing where the fetch has no sections.
    var sections: [UInt8] = []
  }

  /// A fetch under way.
  struct Fetch: Sendable {
    /// The state that all its pages show. Retaining it costs what is written meanwhile.
    let snapshot: Snapshot
    let rows: Rows
    /// What was fetched, so that a page is not continued under another name.
    let subject: String
  }

  /// The limits of fetches.
  package struct Limits: Sendable {
    /// The most fetches kept. `fetch.pages`.
    package var fetches = 64
    /// Seconds for which a fetch is kept. `fetch.pageSeconds`.
    package var seconds: UInt64 = 60
    /// The most objects on a page. `fetch.limit`.
    package var objects = 1000

    /// The defaults.
    package init() {}
  }

  private struct Contents {
    var fetches: [String: (fetch: Fetch, expiry: UInt64)] = [:]
    /// The words of the fetches, the oldest first.
    var words: Deque<String> = []

    mutating func removeExpired(at now: UInt64) {
      while let oldest = words.first, let expiry = fetches[oldest]?.expiry, expiry <= now { removeOldest() }
    }

    mutating func removeOldest() {
      if let oldest = words.popFirst() { fetches[oldest] = nil }
    }
  }

  let limits: Limits
  private let now: @Sendable () -> UInt64
  private let random: @Sendable () -> UInt64
  private let contents = Locked(Contents())

  /// A store without fetches. `now` gives seconds that only grow, `random` the words that name fetches.
  package init(limits: Limits, now: @escaping @Sendable () -> UInt64, random: @escaping @Sendable () -> UInt64) {
    self.limits = limits
    self.now = now
    self.random = random
  }

  /// Keeps a fetch and gives the word that its pages begin with.
  func keep(_ fetch: Fetch) -> String {
    let word = String(random(), radix: 36)
    let now = now()
    contents.withLock { [limits] contents in
      contents.removeExpired(at: now)
      contents.fetches[word] = (fetch, now + limits.seconds)
      contents.words.append(word)
      while contents.words.count > limits.fetches { contents.removeOldest() }
    }
    return word
  }

  /// The fetch that a page belongs to, and where the page begins.
  func fetch(page: String, subject: String) throws(Problem) -> (word: String, fetch: Fetch, offset: Int) {
    let parts = page.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let offset = Int(parts[1]), offset >= 0 else {
      throw Problem(.malformedQuery, "page wants what 'next' gave")
    }
    let word = String(parts[0])
    let now = now()
    let fetch = contents.withLock { contents in
      contents.removeExpired(at: now)
      return contents.fetches[word]?.fetch
    }
    guard let fetch else { throw Problem(.pageExpired, "the state of this page is no longer kept") }
    guard fetch.subject == subject, offset <= fetch.rows.references.count else {
      throw Problem(.malformedQuery, "page belongs to another fetch")
    }
    return (word, fetch, offset)
  }
}
