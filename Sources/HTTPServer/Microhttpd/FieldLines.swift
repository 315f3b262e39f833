import CMicrohttpd
import HTTPTypes

/// The fields of a response in the form in which libmicrohttpd gets them: all as one field.
///
/// libmicrohttpd makes three allocations for each field, searches the names of all of them several times, and frees
/// them one by one: six fields fewer save a twentieth of the time of a GET of an object. It accepts no line breaks in
/// the text of a field, so a placeholder stands for them until then: see `keyway_add_fields`.
struct FieldLines {
  /// The byte that stands, twice, for a line break. No name and no value contains it (RFC 9110 §5.5).
  private static let mark: UInt8 = 1
  /// The fields that every response has, as lines after others.
  private static let commonLines: [UInt8] = CommonFields.all.flatMap {
    [mark, mark] + Array("\($0.name): \($0.value)".utf8)
  }

  private let fields: HTTPFields
  private let id: RequestID?

  /// Creates the lines of a response's fields, without those that only the server sets, with the ID of its request and
  /// the fields that all responses have.
  init(_ fields: HTTPFields, id: RequestID?) {
    self.fields = fields
    self.id = id
  }

  /// The number of bytes that suffice for the fields of nearly all responses.
  private static let usualByteCount = 1_024

  /// The maximum number of bytes that `write` needs.
  var byteCount: Int {
    var count = Self.commonLines.count + 1
    for field in fields { count += field.name.rawName.utf8.count + field.value.utf8.count + 4 }
    if let id { count += RequestID.fieldName.utf8.count + id.text.utf8.count + 4 }
    return count
  }

  /// Writes the fields to a buffer: the name of the first, a zero, its value and the other lines, a zero. Returns the
  /// offset of the value, or nil if the buffer is too small.
  func write(to buffer: UnsafeMutableRawBufferPointer) -> Int? {
    var writer = LineWriter(buffer: buffer, mark: Self.mark)
    for field in fields where !Self.isOurs(field.name) { writer.append(field.name.rawName, field.value) }
    if let id { writer.append(RequestID.fieldName, id.text) }
    if writer.isEmpty {
      for field in CommonFields.all { writer.append(field.name, field.value) }
    } else {
      Self.commonLines.withUnsafeBufferPointer { writer.append($0) }
    }
    writer.append(0)
    return writer.isFull ? nil : writer.valueStart
  }

  /// Adds the fields to a response of libmicrohttpd, which copies them.
  func add(to queueable: OpaquePointer) {
    if !add(to: queueable, within: Self.usualByteCount) { _ = add(to: queueable, within: byteCount) }
  }

  /// Adds the fields if they fit into so many bytes; returns false, and adds nothing, if they do not.
  private func add(to queueable: OpaquePointer, within byteCount: Int) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { buffer in
      guard let name = buffer.baseAddress, let valueStart = write(to: buffer) else { return false }
      keyway_add_fields(
        queueable, name.assumingMemoryBound(to: CChar.self), (name + valueStart).assumingMemoryBound(to: CChar.self),
        CChar(Self.mark))
      return true
    }
  }

  /// Returns true for the fields that only the server sets. Most names differ from theirs in their length already.
  private static func isOurs(_ name: HTTPField.Name) -> Bool {
    switch name.rawName.utf8.count {
    case 4: name == .date
    case 10: name == .connection
    case 14: name == .contentLength
    case 17: name == .transferEncoding
    default: false
    }
  }
}

/// Writes fields as lines, and stops at the end of its buffer.
private struct LineWriter {
  let buffer: UnsafeMutableRawBufferPointer
  let mark: UInt8
  /// The offset of the first value.
  private(set) var valueStart = 0
  /// True if the buffer was too small.
  private(set) var isFull = false
  private var end = 0

  init(buffer: UnsafeMutableRawBufferPointer, mark: UInt8) {
    self.buffer = buffer
    self.mark = mark
  }

  var isEmpty: Bool { end == 0 }

  /// Appends a field, but none without a value, which libmicrohttpd does not accept.
  mutating func append(_ name: String, _ value: String) {
    guard !value.isEmpty else { return }
    if isEmpty {
      append(name)
      append(0)
      valueStart = end
    } else {
      append(mark)
      append(mark)
      append(name)
      append(UInt8(ascii: ":"))
      append(0x20)
    }
    append(value)
  }

  mutating func append(_ byte: UInt8) {
    guard end < buffer.count else { return isFull = true }
    buffer[end] = byte
    end += 1
  }

  mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count <= buffer.count - end, let start = buffer.baseAddress, let source = bytes.baseAddress else {
      return isFull = isFull || !bytes.isEmpty
    }
    (start + end).copyMemory(from: source, byteCount: bytes.count)
    end += bytes.count
  }

  private mutating func append(_ text: String) {
    if text.utf8.withContiguousStorageIfAvailable({ append($0) }) == nil {
      for byte in text.utf8 { append(byte) }
    }
  }
}
