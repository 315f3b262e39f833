import DequeModule
import HTTPServer
import Store

/// A fetch that is kept for its next pages.
struct KeptFetch: Sendable {
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
struct KeptFetches: Sendable {
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
