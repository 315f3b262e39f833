import CEL
import DequeModule
package import HTTPServer
import KeyValueModel
import Store
import Support

/// Fetches whose next page a client may still request. All pages of a fetch show one state, so that state is kept,
/// within limits of time, number and bytes. A page that is no longer kept is `page-expired`.
///
/// A client that has used up its share loses its own oldest fetch with its next one. If all clients together have used
/// up the total, the client with the most gives way, and only to a client that has less. No client takes from another
/// what it could not have itself.
///
/// `contents` is the only mutable state. The ledger's lock is the only lock taken inside its lock.
package final class PageStore: Sendable {
  /// The result of a fetch.
  struct Rows: Sendable {
    /// The references of all objects found, in order.
    let references: [Reference]
    /// The number of objects for which the filter failed.
    var failed = 0
    /// The text `,"sections":[…]` or `,"aggregates":{…}` of all rows. Empty if the fetch has neither.
    var end: [UInt8] = []
  }

  /// A fetch in progress.
  struct Fetch: Sendable {
    /// The state that all its pages show. Retaining it costs as much memory as is written meanwhile.
    let snapshot: Snapshot
    let rows: Rows
    /// The target of the request for the first page.
    let target: Target
    /// The requester of the fetch.
    let owner: Owner

    /// The approximate size in bytes, without the retained state.
    var byteCount: Int {
      256 + MemoryLayout<Reference>.stride * rows.references.count + rows.end.count + target.text.utf8.count
        + (owner.subject?.text.utf8.count ?? 0)
    }

    /// The maximum length in bytes of a `Link` target with the whole query. The head of a response always has room for
    /// it.
    private static let linkBytes = 256

    /// Returns true if a request for another page matches the first one. It may omit parameters, which then apply
    /// unchanged, and may have its own limit.
    fileprivate func includes(_ other: Target) -> Bool {
      other.segments == target.segments
        && other.parameters.allSatisfy { name, value in
          name == "page" || name == "limit" || target[name].map { ExactText($0) } == ExactText(value)
        }
    }

    /// Returns the value of a `Link` header with the next page (RFC 8288). It has all parameters of the fetch unless
    /// they are long, since the page alone is enough.
    func link(toPage page: String, limit: String?) -> String {
      let asked = target.parameters.filter { $0.name != "page" && $0.name != "limit" }
      let rest = (limit.map { [(name: "limit", value: $0)] } ?? []) + [(name: "page", value: page)]
      var text = Target(segments: target.segments, parameters: asked + rest).text
      if text.utf8.count > Self.linkBytes { text = Target(segments: target.segments, parameters: rest).text }
      return "<\(text)>; rel=\"next\""
    }
  }

  /// The requester who may continue a fetch: the identity that began it, as long as its read rules are the same.
  struct Owner: Hashable, Sendable {
    /// The `sub` of the identity, or nil for a client without a token.
    let subject: ExactText?
    /// The viewer whose read rules apply, or nil if none do.
    let viewer: Viewer?

    init(_ requester: Requester) {
      (subject, viewer) = (requester.identity.map { ExactText($0.subject) }, requester.viewer)
    }
  }

  /// Limits of fetches.
  package struct Limits: Sendable {
    /// The maximum number of fetches.
    package var fetches = 1024
    /// The maximum number of fetches of one client.
    package var clientFetches = 64
    /// The maximum size of all fetches in bytes, including the past states that are kept for them alone.
    /// `fetch.pageBytes`.
    package var bytes = 67_108_864
    /// The time that a fetch is kept, in seconds. `fetch.pageSeconds`.
    package var seconds: UInt64 = 60
    /// The maximum number of objects on a page. `fetch.limit`.
    package var objects = 1000

    /// Creates the default limits.
    package init() {}
  }

  let limits: Limits
  private let ledger: MemoryLedger
  private let mark: String
  private let now: @Sendable () -> UInt64
  private let random: @Sendable () -> UInt64
  private let contents: Locked<KeptFetches>

  /// Creates an empty store. The names of its fetches begin with `mark`. `now` returns monotonic seconds, `random` the
  /// numbers that name fetches.
  package init(
    limits: Limits, ledger: MemoryLedger, mark: String = "", now: @escaping @Sendable () -> UInt64,
    random: @escaping @Sendable () -> UInt64
  ) {
    self.limits = limits
    self.ledger = ledger
    self.mark = mark
    self.now = now
    self.random = random
    contents = Locked(KeptFetches(limits: limits))
  }

  /// The number of fetches, and their size in bytes.
  var counts: (fetches: Int, bytes: Int) { contents.withLock { ($0.count, $0.byteCount) } }

  /// Keeps a fetch of a client and returns the word that its pages begin with. Throws `overloaded` if there is no room
  /// that this client may take.
  func keep(_ fetch: Fetch, for client: ClientAddress) throws(Problem) -> String {
    let word = mark + String(random(), radix: 36)
    let now = now()
    let isKept = contents.withLock { [ledger, limits] contents in
      contents.removeExpired(at: now)
      guard contents.makeRoom(for: fetch.byteCount, of: client) else { return false }
      while true {
        do throws(MemoryRefusal) {
          let reservation = try ledger.reserve(fetch.byteCount, for: client, .pages)
          contents.insert(
            KeptFetch(fetch: fetch, client: client, expiry: now + limits.seconds, reservation: reservation), as: word)
          return true
        } catch {
          // A client gives up its own older fetches first.
          guard contents.removeOldest(of: client) else { return false }
        }
      }
    }
    guard isKept else {
      throw Problem(
        .overloaded, "no memory is left to keep so many rows for their next pages; use a larger limit")
    }
    return word
  }

  /// Returns the fetch of a page, and the offset of the page in it. `target` is the target of the request. A fetch of
  /// another owner is treated as expired.
  func fetch(
    page: String, _ target: Target, owner: Owner
  ) throws(Problem) -> (word: String, fetch: Fetch, offset: Int) {
    let parts = page.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let offset = Int(parts[1]), offset >= 0 else {
      throw Problem(.malformedQuery, "page must be the value of 'next' in the page before")
    }
    let word = String(parts[0])
    let now = now()
    let fetch = contents.withLock { contents in
      contents.removeExpired(at: now)
      return contents.fetch(word)
    }
    guard let fetch, fetch.owner == owner else {
      throw Self.expired
    }
    guard fetch.includes(target), offset <= fetch.rows.references.count else {
      throw Problem(.malformedQuery, "page belongs to a fetch with other parameters; page alone is enough")
    }
    return (word, fetch, offset)
  }

  /// The problem of a page whose state is no longer kept.
  package static var expired: Problem { Problem(.pageExpired, "the state of this page is no longer kept") }

  /// Removes the fetches that are too old, and those that have become too large by later writes. `written` is
  /// `Snapshot.writtenBytes` of the present state. Call this about every second.
  func sweep(written: Int) {
    let now = now()
    contents.withLock { contents in
      contents.removeExpired(at: now)
      contents.settle(written: written)
    }
  }
}

/// A fetch kept for its next pages.
private struct KeptFetch: Sendable {
  let fetch: PageStore.Fetch
  let client: ClientAddress
  /// The time at which it expires, in seconds of `now`.
  let expiry: UInt64
  let reservation: MemoryReservation
  /// The bytes of past states that are kept for it, and that the fetches after it do not need.
  var retainedBytes = 0

  var byteCount: Int { fetch.byteCount + retainedBytes }
}

/// The kept fetches, and the rules for which of them give way. Pure bookkeeping, without a lock or a clock.
private struct KeptFetches: Sendable {
  private struct Share {
    var fetches = 0
    var bytes = 0
  }

  private let limits: PageStore.Limits
  private var fetches: [String: KeptFetch] = [:]
  /// The words of the fetches, oldest first.
  private var words: Deque<String> = []
  private var shares: [ClientAddress: Share] = [:]
  /// The total size of the fetches in bytes.
  private(set) var byteCount = 0

  init(limits: PageStore.Limits) {
    self.limits = limits
  }

  /// The number of fetches.
  var count: Int { fetches.count }

  /// Returns the fetch of a word.
  func fetch(_ word: String) -> PageStore.Fetch? { fetches[word]?.fetch }

  /// Adds the newest fetch.
  mutating func insert(_ kept: KeptFetch, as word: String) {
    fetches[word] = kept
    words.append(word)
    count(1, kept.byteCount, of: kept.client)
  }

  /// Removes the expired fetches.
  mutating func removeExpired(at now: UInt64) {
    while let oldest = words.first, let kept = fetches[oldest], kept.expiry <= now { remove(oldest) }
  }

  /// Removes the oldest fetch of a client. Returns false if it has none.
  mutating func removeOldest(of client: ClientAddress) -> Bool {
    guard let word = words.first(where: { fetches[$0]?.client == client }) else { return false }
    remove(word)
    return true
  }

  /// Removes fetches to make room for one more of this size. Returns false if there is no room that this client may
  /// take.
  mutating func makeRoom(for bytes: Int, of client: ClientAddress) -> Bool {
    guard bytes <= limits.bytes else { return false }
    while shares[client]?.fetches ?? 0 >= limits.clientFetches {
      guard removeOldest(of: client) else { return false }
    }
    while fetches.count >= limits.fetches || byteCount + bytes > limits.bytes {
      let own = shares[client] ?? Share()
      let wanted = dominance(of: Share(fetches: own.fetches + 1, bytes: own.bytes + bytes))
      let largest = shares.max { dominance(of: $0.value) < dominance(of: $1.value) }
      if let largest, largest.key != client, dominance(of: largest.value) > wanted {
        guard removeOldest(of: largest.key) else { return false }
      } else {
        guard removeOldest(of: client) else { return false }
      }
    }
    return true
  }

  /// Returns the dominant part of a share: the larger of its parts of all fetches and of all bytes (Ghodsi et al.,
  /// Dominant Resource Fairness, NSDI 2011).
  private func dominance(of share: Share) -> Double {
    max(Double(share.fetches) / Double(limits.fetches), Double(share.bytes) / Double(limits.bytes))
  }

  /// Attributes the memory of past states to the fetches. Each is charged the bytes written between its state and the
  /// next one that is kept. Then removes the fetches over the limits: those whose clients have no memory left and,
  /// while the total is too large, those with the oldest states, which keep the most.
  mutating func settle(written: Int) {
    var next = written
    let byAge = words.sorted { age(of: $0) < age(of: $1) }
    for word in byAge.reversed() {
      guard let kept = fetches[word] else { continue }
      retain(max(0, next - kept.fetch.snapshot.writtenBytes), word)
      next = min(next, kept.fetch.snapshot.writtenBytes)
    }
    var rest = byAge[...]
    while byteCount > limits.bytes, let oldest = rest.popFirst() { remove(oldest) }
  }

  private func age(of word: String) -> Int { fetches[word]?.fetch.snapshot.writtenBytes ?? 0 }

  private mutating func retain(_ bytes: Int, _ word: String) {
    guard let kept = fetches[word], kept.retainedBytes != bytes else { return }
    do throws(MemoryRefusal) {
      try kept.reservation.resize(to: kept.fetch.byteCount + bytes)
      fetches[word]?.retainedBytes = bytes
      count(0, bytes - kept.retainedBytes, of: kept.client)
    } catch {
      remove(word)
    }
  }

  private mutating func remove(_ word: String) {
    guard let kept = fetches.removeValue(forKey: word) else { return }
    if words.first == word { words.removeFirst() } else { words.removeAll { $0 == word } }
    count(-1, -kept.byteCount, of: kept.client)
  }

  private mutating func count(_ change: Int, _ bytes: Int, of client: ClientAddress) {
    byteCount += bytes
    shares[client, default: Share()].fetches += change
    shares[client, default: Share()].bytes += bytes
    if shares[client]?.fetches == 0 { shares[client] = nil }
  }
}
