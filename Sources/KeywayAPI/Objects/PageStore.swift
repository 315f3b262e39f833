import DequeModule
import KeyValueModel
import Locking

/// The fetches that somebody may ask the next page of. All pages show one state, so that state is kept: for a while, and
/// for so many fetches; the oldest make room. A page that is no longer kept is `page-expired`.
package final class PageStore: Sendable {
  /// A fetch under way.
  struct Fetch: Sendable {
    let snapshot: ModelState
    let revision: Revision
    let references: [Reference]
    /// What was fetched, so that a page is not continued under another name.
    let subject: String
    let expiry: UInt64
  }

  /// What pages may hold.
  package struct Limits: Sendable {
    /// The most fetches kept. `fetch.pages`.
    package var fetches = 64
    /// Seconds for which a fetch is kept. `fetch.pageSeconds`.
    package var seconds: UInt64 = 60
    /// The most objects on a page. `fetch.limit`.
    package var objects = 1000
    /// The most that the filter of one fetch may cost, in steps of evaluation over all objects. `fetch.filterCost`.
    package var filterCost = 20_000_000

    /// The defaults.
    package init() {}
  }

  private struct Contents {
    var fetches: [String: Fetch] = [:]
    var order: Deque<String> = []
  }

  let limits: Limits
  private let now: @Sendable () -> UInt64
  private let random: @Sendable () -> UInt64
  private let contents = Locked(Contents())

  /// A store without fetches. `now` gives seconds that only grow.
  package init(limits: Limits, now: @escaping @Sendable () -> UInt64, random: @escaping @Sendable () -> UInt64) {
    self.limits = limits
    self.now = now
    self.random = random
  }

  /// Keeps a fetch and gives the word that its pages begin with.
  func keep(_ snapshot: ModelState, _ revision: Revision, _ references: [Reference], subject: String) -> String {
    let fetch = Fetch(
      snapshot: snapshot, revision: revision, references: references, subject: subject, expiry: now() + limits.seconds)
    let word = String(random(), radix: 36)
    let moment = now()
    contents.withLock { contents in
      Self.forgetExpired(&contents, moment)
      contents.fetches[word] = fetch
      contents.order.append(word)
      while contents.order.count > limits.fetches, let oldest = contents.order.popFirst() {
        contents.fetches[oldest] = nil
      }
    }
    return word
  }

  private static func forgetExpired(_ contents: inout Contents, _ moment: UInt64) {
    while let oldest = contents.order.first, contents.fetches[oldest].map({ $0.expiry <= moment }) ?? true {
      contents.fetches[oldest] = nil
      contents.order.removeFirst()
    }
  }

  /// The fetch that a page belongs to, and where the page begins.
  func fetch(page: String, subject: String) throws(Problem) -> (word: String, fetch: Fetch, offset: Int) {
    let parts = page.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let offset = Int(parts[1]), offset >= 0 else {
      throw Problem(.malformedQuery, "page wants what 'next' gave")
    }
    let word = String(parts[0])
    let moment = now()
    let fetch = contents.withLock { contents in
      Self.forgetExpired(&contents, moment)
      return contents.fetches[word]
    }
    guard let fetch else { throw Problem(.pageExpired, "the state of this page is no longer kept") }
    guard fetch.subject == subject, offset <= fetch.references.count else {
      throw Problem(.malformedQuery, "page belongs to another fetch")
    }
    return (word, fetch, offset)
  }
}
