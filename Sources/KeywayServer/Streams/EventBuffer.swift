import HTTPServer
import KeyValueModel

/// The text of events while it is assembled. Its bytes are counted, so that it never exceeds its limit. It consists of
/// pieces, so that a long value is in memory once, however many events contain it.
///
/// A text that becomes too long is emptied, and ignores further appends.
struct EventBuffer: Sendable {
  /// The pieces before the last.
  private var pieces: [[UInt8]] = []
  private var last: [UInt8] = []
  private var earlierCount = 0
  /// The number of bytes in pieces that other events share.
  private var sharedCount = 0
  private let limit: Int
  private let longTexts: LongTexts
  /// True if the text would have exceeded its limit.
  private(set) var isTooLong = false

  /// Creates an empty text with a limit in bytes.
  init(limit: Int, _ longTexts: LongTexts) {
    self.limit = limit
    self.longTexts = longTexts
  }

  /// The number of bytes.
  var count: Int { earlierCount + last.count }

  /// The number of bytes that other events do not share.
  var ownCount: Int { count - sharedCount }

  /// True if the text is empty and has not exceeded its limit.
  var isEmpty: Bool { count == 0 && !isTooLong }

  /// Returns the text to send, or nil if it is too long.
  func event(at position: StreamPosition? = nil) -> EventBytes? {
    guard !isTooLong else { return nil }
    let position = position?.rawValue ?? 0
    return pieces.isEmpty
      ? EventBytes(last, position: position) : EventBytes(pieces: pieces + [last], position: position)
  }

  // MARK: Appending

  /// Appends a few bytes: `body` appends them.
  mutating func write(_ body: (inout [UInt8]) -> Void) {
    guard !isTooLong else { return }
    body(&last)
    if count > limit { giveUp() }
  }

  /// Appends bytes.
  mutating func append(_ bytes: some Collection<UInt8>) { write { $0.append(contentsOf: bytes) } }

  /// Appends another text, without copying its long pieces.
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
      // Its JSON is at least as long.
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

  /// Empties the text, and marks it as too long.
  mutating func giveUp() {
    isTooLong = true
    (pieces, last, earlierCount, sharedCount) = ([], [], 0, 0)
  }
}
