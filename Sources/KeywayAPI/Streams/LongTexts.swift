import KeyValueModel
import Locking
import ModelStore

/// Long strings as JSON, each of them encoded once for all the events that tell it. Usable from any thread.
///
/// A string is found by where it is in memory, which all copies of a value have in common, and which costs nothing to
/// find out. What is kept holds the string too, so that nothing else comes to be in its place.
final class LongTexts: Sendable {
  /// From this length on a string is worth it.
  static let byteCount = 4096
  /// What is kept at most, strings and their JSON counted; the oldest make room.
  private static let weightLimit = 32 << 20

  private struct Place: Hashable, Sendable {
    let address: UInt
    let byteCount: Int

    /// Nil for a string that is not in one piece.
    init?(of text: String) {
      let address = text.utf8.withContiguousStorageIfAvailable { UInt(bitPattern: $0.baseAddress) }
      guard let address else { return nil }
      self.address = address
      byteCount = text.utf8.count
    }
  }

  private struct Entry: Sendable {
    let text: String
    let json: [UInt8]
  }

  private let cache = Locked(BoundedCache<Place, Entry>(weightLimit: LongTexts.weightLimit))

  /// How many are kept. For tests.
  var count: Int { cache.withLock { $0.count } }

  /// A string as JSON, quotation marks included.
  func json(of text: String) -> [UInt8] {
    let place = Place(of: text)
    if let place, let known = cache.withLock({ $0.item(for: place) }) { return known.json }
    var json: [UInt8] = []
    json.reserveCapacity(text.utf8.count + 2)
    json.appendJSONString(text)
    if let place {
      let entry = Entry(text: text, json: json)
      cache.withLock { $0.put(entry, for: place, at: 0, weight: text.utf8.count + entry.json.count) }
    }
    return json
  }
}
