import CMicrohttpd

/// The fields of a response in the form in which libmicrohttpd gets them: all as one field.
///
/// libmicrohttpd makes three allocations for each field, searches the names of all of them several times, and frees
/// them one by one: six fields fewer save a twentieth of the time of a GET of an object. It accepts no line breaks in
/// the text of a field, so a placeholder stands for them until then: see `keyway_add_fields`.
struct FieldLines {
  /// The end of the name of the field that has the request's ID.
  private static let idName = Array("\(RequestID.fieldName): ".utf8)
  /// The fields that every response has, and the zero that ends the lines.
  private static let ending: [UInt8] =
    Array(CommonFields.all.map { "\($0.name): \($0.value)" }.joined(separator: "\u{1}\u{1}").utf8) + [0]

  private let fields: FieldSection
  private let id: RequestID?

  /// Creates the lines of a response's fields, with the ID of its request and the fields that all responses have.
  init(_ fields: FieldSection, id: RequestID?) {
    self.fields = fields
    self.id = id
  }

  /// The number of bytes that `write` needs.
  var byteCount: Int {
    fields.bytes.count + Self.ending.count + (id.map { Self.idName.count + $0.text.utf8.count + 2 } ?? 0)
  }

  /// Writes the fields to a buffer of `byteCount` bytes: the name of the first, a zero, its value and the other lines,
  /// a zero. Returns the offset of the value.
  func write(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    var end = 0
    func append(_ bytes: some Collection<UInt8>) {
      buffer[end...].copyBytes(from: bytes)
      end += bytes.count
    }
    append(fields.bytes)
    if let id {
      append(Self.idName)
      append(id.text.utf8)
      append(CollectionOfOne(FieldSection.mark))
      append(CollectionOfOne(FieldSection.mark))
    }
    append(Self.ending)
    let colon = buffer.firstIndex(of: UInt8(ascii: ":")) ?? end - 1
    buffer[colon] = 0
    return colon + 2
  }

  /// Adds the fields to a response of libmicrohttpd, which copies them.
  func add(to queueable: OpaquePointer) {
    withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 1) { buffer in
      let valueStart = write(to: buffer)
      guard let name = buffer.baseAddress else { return }
      _ = keyway_add_fields(
        queueable, name.assumingMemoryBound(to: CChar.self), (name + valueStart).assumingMemoryBound(to: CChar.self),
        CChar(FieldSection.mark))
    }
  }
}
