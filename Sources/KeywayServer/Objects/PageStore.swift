import CEL
import DequeModule
package import HTTPServer
import KeyValueModel
import Store
import Support

/// Fetches whose next page a client may still ask for. All pages of a fetch show one state, so the state is kept: for a
/// while, for so many fetches, and for so many bytes. A page that is no longer kept is `page-expired`.
///
/// A client whose share is used up loses its own oldest fetch by the next one. Where all clients together have what
/// there is, room comes from the one that has the most, and only for one that has less: no client takes from another
/// what it could not have itself.
///
/// `contents` is all that changes. The ledger's lock is taken inside its lock, and no other.
package final class PageStore: Sendable {
  /// What a fetch found.
  struct Rows: Sendable {
    /// All of it, in order.
    let references: [Reference]
    /// For how many objects the filter failed.
    var failed = 0
    /// `,"sections":[…]` or `,"aggregates":{…}` of all of it; nothing where the fetch asks for neither.
    var end: [UInt8] = []
  }

  /// A fetch under way.
  struct Fetch: Sendable {
    /// The state that all its pages show. Retaining it costs what is written meanwhile.
    let snapshot: Snapshot
    let rows: Rows
    /// What was asked for: the target of the first page.
    let target: Target
    /// Who fetched it.
    let owner: Owner

    /// What it takes by itself, about.
    var byteCount: Int {
      256 + MemoryLayout<Reference>.stride * rows.references.count + rows.end.count + target.text.utf8.count
        + (owner.subject?.text.utf8.count ?? 0)
    }

    /// The longest target of a `Link` that has the whole query, in bytes: the head of a response always has that room.
    private static let linkBytes = 256

    /// True if a request for another page asks for nothing that the first one did not: what it leaves out is as there,
    /// and how long its page is, it may say itself.
    fileprivate func includes(_ other: Target) -> Bool {
      other.segments == target.segments
        && other.parameters.allSatisfy { name, value in
          name == "page" || name == "limit" || target[name].map { ExactText($0) } == ExactText(value)
        }
    }

    /// The value of a `Link` header that leads to the next page (RFC 8288): with everything that the fetch asks for,
    /// unless that is long, because the page alone is enough.
    func link(toPage page: String, limit: String?) -> String {
      let asked = target.parameters.filter { $0.name != "page" && $0.name != "limit" }
      let rest = (limit.map { [(name: "limit", value: $0)] } ?? []) + [(name: "page", value: page)]
      var text = Target(segments: target.segments, parameters: asked + rest).text
      if text.utf8.count > Self.linkBytes { text = Target(segments: target.segments, parameters: rest).text }
      return "<\(text)>; rel=\"next\""
    }
  }

  /// Who may go on with a fetch: the identity that began it, as long as it may read the same.
  struct Owner: Hashable, Sendable {
    /// The `sub` of the identity; nil for a client without a token.
    let subject: ExactText?
    /// What it may read; nil for everything.
    let viewer: Viewer?

    init(_ requester: Requester) {
      (subject, viewer) = (requester.identity.map { ExactText($0.subject) }, requester.viewer)
    }
  }

  /// The limits of fetches.
  package struct Limits: Sendable {
    /// The most fetches kept.
    package var fetches = 1024
    /// The most fetches kept for one client.
    package var clientFetches = 64
    /// The most bytes of fetches, with what of past states is kept for them alone. `fetch.pageBytes`.
    package var bytes = 67_108_864
    /// Seconds for which a fetch is kept. `fetch.pageSeconds`.
    package var seconds: UInt64 = 60
    /// The most objects on a page. `fetch.limit`.
    package var objects = 1000

    /// The defaults.
    package init() {}
  }

  let limits: Limits
  private let ledger: MemoryLedger
  private let mark: String
  private let now: @Sendable () -> UInt64
  private let random: @Sendable () -> UInt64
  private let contents: Locked<KeptFetches>

  /// A store without fetches. Their names begin with `mark`, `now` gives seconds that only grow, `random` the words
  /// that name fetches.
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

  /// How many fetches are kept, and the bytes of them.
  var counts: (fetches: Int, bytes: Int) { contents.withLock { ($0.count, $0.byteCount) } }

  /// Keeps a fetch of a client and gives the word that its pages begin with. Throws `overloaded` where there is no room
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
          // Its own fetches are what a client can do without.
          guard contents.removeOldest(of: client) else { return false }
        }
      }
    }
    guard isKept else {
      throw Problem(
        .overloaded, "there is no room to keep so many rows for their next pages; a larger limit needs fewer pages")
    }
    return word
  }

  /// The fetch that a page belongs to, and where the page begins; `target` is that of the request. One of another owner
  /// is like one that is not kept.
  func fetch(
    page: String, _ target: Target, owner: Owner
  ) throws(Problem) -> (word: String, fetch: Fetch, offset: Int) {
    let parts = page.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let offset = Int(parts[1]), offset >= 0 else {
      throw Problem(.malformedQuery, "page wants what 'next' gave")
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
      throw Problem(.malformedQuery, "page belongs to another fetch; page alone is enough")
    }
    return (word, fetch, offset)
  }

  /// What is answered where the state of a page is not kept.
  package static var expired: Problem { Problem(.pageExpired, "the state of this page is no longer kept") }

  /// Lets go of what is too old, and of what has become too large by what was written meanwhile; `written` is
  /// `Snapshot.writtenBytes` of the present state. To be called every second or so.
  func sweep(written: Int) {
    let now = now()
    contents.withLock { contents in
      contents.removeExpired(at: now)
      contents.settle(written: written)
    }
  }
}

/// A fetch that is kept for its next pages.
private struct KeptFetch: Sendable {
  let fetch: PageStore.Fetch
  let client: ClientAddress
  /// When it is let go, in seconds.
  let expiry: UInt64
  let reservation: MemoryReservation
  /// Bytes of past states that are kept for it, and would not be for the fetches after it.
  var retainedBytes = 0

  var byteCount: Int { fetch.byteCount + retainedBytes }
}

/// The fetches that are kept, and who gives way where there are too many: tables without lock and clock.
private struct KeptFetches: Sendable {
  private struct Share {
    var fetches = 0
    var bytes = 0
  }

  private let limits: PageStore.Limits
  private var fetches: [String: KeptFetch] = [:]
  /// The words of the fetches, the oldest first.
  private var words: Deque<String> = []
  private var shares: [ClientAddress: Share] = [:]
  /// The bytes of all of them.
  private(set) var byteCount = 0

  init(limits: PageStore.Limits) {
    self.limits = limits
  }

  /// How many there are.
  var count: Int { fetches.count }

  /// The fetch of a word.
  func fetch(_ word: String) -> PageStore.Fetch? { fetches[word]?.fetch }

  /// Adds the youngest fetch.
  mutating func insert(_ kept: KeptFetch, as word: String) {
    fetches[word] = kept
    words.append(word)
    count(1, kept.byteCount, of: kept.client)
  }

  /// Takes away what is too old.
  mutating func removeExpired(at now: UInt64) {
    while let oldest = words.first, let kept = fetches[oldest], kept.expiry <= now { remove(oldest) }
  }

  /// Takes away the oldest fetch of a client. False where it has none.
  mutating func removeOldest(of client: ClientAddress) -> Bool {
    guard let word = words.first(where: { fetches[$0]?.client == client }) else { return false }
    remove(word)
    return true
  }

  /// Has others give way to one more fetch of so many bytes. False where none does that should.
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

  /// How much of what there is a share is, by that of which it is the larger part (Ghodsi et al., Dominant Resource
  /// Fairness, NSDI 2011).
  private func dominance(of share: Share) -> Double {
    max(Double(share.fetches) / Double(limits.fetches), Double(share.bytes) / Double(limits.bytes))
  }

  /// Counts what past states keep alive, by the bytes that were written since: for each state what was written between
  /// it and the next that is kept. Then takes away what is over the limits: a fetch that its client has no memory for,
  /// and while there is too much in all, that of the oldest state, which is the one that keeps the most.
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
