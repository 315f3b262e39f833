import DequeModule
import HTTPServer
import KeyValueModel

/// The streams whose connection was cut, by their names: tables without lock and clock.
///
/// They observe nothing. A client has as many as `streams.cutPerAddress`, then its oldest gives way; where there are
/// `streams.cut` in all, the oldest of the client that has most.
struct CutStreams {
  /// A stream as it was when it was cut.
  struct Entry {
    let stream: CellStream
    /// The last revision that it was notified of.
    let revision: Revision
    /// Whether the client's side had received everything.
    let isDelivered: Bool
    /// The second after which it is gone.
    let deadline: UInt64
    /// What tells it from the same stream when it was cut at another time.
    fileprivate(set) var number = 0
  }

  private var entries: [StreamID: Entry] = [:]
  /// The names in the order of cutting, with the numbers that they had.
  private var order: Deque<(name: StreamID, number: Int)> = []
  private var counts: [ClientAddress: Int] = [:]
  private var lastNumber = 0

  /// How many there are.
  var count: Int { entries.count }

  /// A stream that was cut; nil where there is none of the name, or it is gone.
  func entry(_ name: StreamID, at now: UInt64) -> Entry? {
    entries[name].flatMap { $0.deadline < now ? nil : $0 }
  }

  /// Adds a stream; others give way.
  mutating func insert(_ entry: Entry, _ limits: StreamLimits) {
    let client = entry.stream.client
    while counts[client] ?? 0 >= limits.cutPerAddress, removeOldest(of: client) {}
    while entries.count >= limits.cut, let most = counts.max(by: { $0.value < $1.value }), removeOldest(of: most.key) {}
    var entry = entry
    lastNumber += 1
    entry.number = lastNumber
    entries[entry.stream.name] = entry
    counts[client, default: 0] += 1
    order.append((entry.stream.name, entry.number))
  }

  /// Takes a stream away; false where it is not there.
  mutating func remove(_ name: StreamID, at now: UInt64) -> Bool {
    let isThere = entry(name, at: now) != nil
    forget(name)
    return isThere
  }

  /// Takes a stream out that goes on; nil where it is not there as it was when it had the number.
  mutating func take(_ name: StreamID, _ number: Int, at now: UInt64) -> Entry? {
    guard let entry = entry(name, at: now), entry.number == number else { return nil }
    entries[name] = nil
    discount(entry.stream.client)
    return entry
  }

  /// Puts a stream back that did not go on after all.
  mutating func putBack(_ entry: Entry) {
    entries[entry.stream.name] = entry
    counts[entry.stream.client, default: 0] += 1
  }

  /// Takes away what is too old.
  mutating func removeExpired(at now: UInt64) {
    while let oldest = order.first {
      if let entry = entries[oldest.name], entry.number == oldest.number {
        guard entry.deadline < now else { return }
        forget(oldest.name)
      }
      order.removeFirst()
    }
  }

  private mutating func removeOldest(of client: ClientAddress) -> Bool {
    guard
      let index = order.firstIndex(where: { place in
        entries[place.name].map { $0.number == place.number && $0.stream.client == client } ?? false
      })
    else { return false }
    forget(order.remove(at: index).name)
    return true
  }

  private mutating func forget(_ name: StreamID) {
    guard let entry = entries.removeValue(forKey: name) else { return }
    entry.stream.release()
    discount(entry.stream.client)
  }

  private mutating func discount(_ client: ClientAddress) {
    let count = counts[client] ?? 0
    counts[client] = count > 1 ? count - 1 : nil
  }
}
