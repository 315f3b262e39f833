import KeyValueModel
import Store
import Support

/// Long strings and arrays as JSON, each encoded once for all events that contain it. Can be used from any thread.
///
/// A value is found by its address in memory, which all its copies share and which costs nothing to determine. An entry
/// retains its value, so that the address is not reused.
final class LongTexts: Sendable {
  /// The minimum length in bytes of a string to keep.
  static let byteCount = 4096
  /// The maximum size of all entries in bytes, including the strings and their JSON. The oldest entries are removed
  /// first.
  private static let weightLimit = 32 << 20

  /// The minimum number of elements of an array to keep.
  static let elementCount = 256

  private struct Place: Hashable, Sendable {
    let address: UInt
    let count: Int
    let isArray: Bool

    /// Creates the place of a string, or nil if its storage is not contiguous.
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

  /// The number of entries. For tests.
  var count: Int { cache.withLock { $0.count } }

  /// Returns a string as JSON, including its quotation marks.
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

  /// Returns an array as JSON. Nil if that is not known already and is longer than `limit` bytes.
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
