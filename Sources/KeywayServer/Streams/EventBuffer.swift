import HTTPServer
import KeyValueModel
import Store
import Support

/// The text of events while it is put together: counted, so that no more than its limit ever exists, and in pieces, so
/// that a long value is in memory once, however many events tell it.
///
/// One that becomes too long forgets what it has and takes nothing more.
struct EventBuffer: Sendable {
  /// The pieces before the last.
  private var pieces: [[UInt8]] = []
  private var last: [UInt8] = []
  private var earlierCount = 0
  /// How many of the bytes are in pieces that other events share.
  private var sharedCount = 0
  private let limit: Int
  private let longTexts: LongTexts
  /// Whether it would have been longer than its limit.
  private(set) var isTooLong = false

  /// An empty text of at most so many bytes.
  init(limit: Int, _ longTexts: LongTexts) {
    self.limit = limit
    self.longTexts = longTexts
  }

  /// How many bytes there are.
  var count: Int { earlierCount + last.count }

  /// How many bytes there are in this text alone.
  var ownCount: Int { count - sharedCount }

  /// Whether there is nothing in it.
  var isEmpty: Bool { count == 0 && !isTooLong }

  /// The text as it is to be sent; nil where it is too long.
  func event(at position: StreamPosition? = nil) -> EventBytes? {
    guard !isTooLong else { return nil }
    let position = position?.rawValue ?? 0
    return pieces.isEmpty
      ? EventBytes(last, position: position) : EventBytes(pieces: pieces + [last], position: position)
  }

  // MARK: Appending

  /// Appends a little: what `body` does to the bytes.
  mutating func write(_ body: (inout [UInt8]) -> Void) {
    guard !isTooLong else { return }
    body(&last)
    if count > limit { giveUp() }
  }

  /// Appends bytes.
  mutating func append(_ bytes: some Collection<UInt8>) { write { $0.append(contentsOf: bytes) } }

  /// Appends what has been put together elsewhere, its long pieces without a copy.
  mutating func append(_ other: EventBuffer) {
    guard !other.isTooLong else { return giveUp() }
    guard !isTooLong else { return }
    if other.count < LongTexts.byteCount {
      append(other.last)
    } else {
      for piece in other.pieces { append(shared: piece) }
      append(shared: other.last)
    }
  }

  /// Appends a value as JSON.
  mutating func append(_ value: Value) {
    guard !isTooLong else { return }
    switch value {
    case .string(let text) where text.utf8.count >= LongTexts.byteCount:
      // As JSON it is no shorter.
      guard text.utf8.count <= limit - count else { return giveUp() }
      append(shared: longTexts.json(of: text))
    case .array(let elements) where elements.count >= LongTexts.elementCount:
      guard let json = longTexts.json(of: elements, limit: limit - count) else { return giveUp() }
      append(shared: json)
    case .array(let elements): appendList(elements)
    case .members(let list): appendList(list)
    case .object(let object): append(object)
    default: write { value.appendJSON(to: &$0) }
    }
  }

  private mutating func appendList(_ elements: some Sequence<Value>) {
    var separator = UInt8(ascii: "[")
    var isEmpty = true
    for element in elements {
      guard !isTooLong else { return }
      write { $0.append(separator) }
      append(element)
      separator = UInt8(ascii: ",")
      isEmpty = false
    }
    append(isEmpty ? "[]".utf8 : "]".utf8)
  }

  private mutating func append(_ object: JSONObject) {
    var separator = UInt8(ascii: "{")
    for (name, value) in object.members {
      guard !isTooLong else { return }
      write { bytes in
        bytes.append(separator)
        bytes.appendJSONString(name)
        bytes.append(UInt8(ascii: ":"))
      }
      append(value)
      separator = UInt8(ascii: ",")
    }
    append(object.members.isEmpty ? "{}".utf8 : "}".utf8)
  }

  private mutating func append(shared piece: [UInt8]) {
    guard !isTooLong, !piece.isEmpty else { return }
    guard piece.count <= limit - count else { return giveUp() }
    if piece.count < LongTexts.byteCount { return last.append(contentsOf: piece) }
    if !last.isEmpty { pieces.append(last) }
    pieces.append(piece)
    earlierCount += last.count + piece.count
    sharedCount += piece.count
    last = []
  }

  /// Forgets what there is: it is too long.
  mutating func giveUp() {
    isTooLong = true
    (pieces, last, earlierCount, sharedCount) = ([], [], 0, 0)
  }
}

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
  fileprivate static let elementCount = 256

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
