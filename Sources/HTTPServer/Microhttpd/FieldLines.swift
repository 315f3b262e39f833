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

  /// The maximum number of bytes that `write` needs.
  var byteCount: Int {
    var count = Self.commonLines.count + 1
    for field in fields { count += field.name.rawName.utf8.count + field.value.utf8.count + 4 }
    if let id { count += RequestID.fieldName.utf8.count + id.text.utf8.count + 4 }
    return count
  }

  /// Writes the fields to a buffer of at least `byteCount` bytes: the name of the first, a zero, its value and the
  /// other lines, a zero. Returns the offset of the value.
  func write(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    var end = 0
    var valueStart = 0
    func append(_ text: String) {
      var text = text
      text.withUTF8 { bytes in
        UnsafeMutableRawBufferPointer(rebasing: buffer[end...]).copyMemory(from: UnsafeRawBufferPointer(bytes))
        end += bytes.count
      }
    }
    func append(_ byte: UInt8) {
      buffer[end] = byte
      end += 1
    }
    func append(_ name: String, _ value: String) {
      let isFirst = end == 0
      if !isFirst {
        append(Self.mark)
        append(Self.mark)
      }
      append(name)
      if isFirst {
        append(0)
        valueStart = end
      } else {
        append(UInt8(ascii: ":"))
        append(0x20)
      }
      append(value)
    }
    // libmicrohttpd does not accept a field without a value.
    for field in fields where !Self.isOurs(field.name) && !field.value.isEmpty {
      append(field.name.rawName, field.value)
    }
    if let id { append(RequestID.fieldName, id.text) }
    if end == 0 {
      for field in CommonFields.all { append(field.name, field.value) }
    } else {
      for byte in Self.commonLines { append(byte) }
    }
    append(0)
    return valueStart
  }

  /// Adds the fields to a response of libmicrohttpd, which copies them.
  func add(to queueable: OpaquePointer) {
    withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { buffer in
      let valueStart = write(to: buffer)
      guard let name = buffer.baseAddress else { return }
      keyway_add_fields(
        queueable, name.assumingMemoryBound(to: CChar.self), (name + valueStart).assumingMemoryBound(to: CChar.self),
        CChar(Self.mark))
    }
  }

  /// Returns true for the fields that only the server sets.
  private static func isOurs(_ name: HTTPField.Name) -> Bool {
    name == .contentLength || name == .transferEncoding || name == .date || name == .connection
  }
}
