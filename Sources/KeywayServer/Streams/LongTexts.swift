import KeyValueModel
import Store
import Support

/// Long strings and arrays as JSON, each of them encoded once for all the events that tell it. Usable from any thread.
///
/// One is found by where it is in memory, which all copies of a value have in common, and which costs nothing to find
/// out. What is kept holds the value too, so that nothing else comes to be in its place.
final class LongTexts: Sendable {
  /// From this length on a string is worth it.
  static let byteCount = 4096
  /// What is kept at most, strings and their JSON counted; the oldest make room.
  private static let weightLimit = 32 << 20

  /// From this number of elements on an array is worth it.
  static let elementCount = 256

  private struct Place: Hashable, Sendable {
    let address: UInt
    let count: Int
    let isArray: Bool

    /// Nil for a string that is not in one piece.
    init?(of text: String) {
      let address = text.utf8.withContiguousStorageIfAvailable { UInt(bitPattern: $0.baseAddress) }
      guard let address else { return nil }
      self.address = address
      count = text.utf8.count
      isArray = false
    }

    init(of elements: [Value]) {
      address = elements.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
      count = elements.count
      isArray = true
    }
  }

  private struct Entry: Sendable {
    let value: Value
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
      let entry = Entry(value: .string(text), json: json)
      cache.withLock { $0.put(entry, for: place, at: 0, weight: text.utf8.count + entry.json.count) }
    }
    return json
  }

  /// An array as JSON; nil where it is longer than `limit` bytes.
  func json(of elements: [Value], limit: Int) -> [UInt8]? {
    let place = Place(of: elements)
    if let known = cache.withLock({ $0.item(for: place) }) { return known.json }
    var json = Array("[".utf8)
    for element in elements {
      if json.count > 1 { json.append(UInt8(ascii: ",")) }
      element.appendJSON(to: &json)
      guard json.count <= limit else { return nil }
    }
    json.append(UInt8(ascii: "]"))
    let entry = Entry(value: .array(elements), json: json)
    cache.withLock { $0.put(entry, for: place, at: 0, weight: 2 * entry.json.count) }
    return json
  }
}
