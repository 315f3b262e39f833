/// The values of an object in its memory, one behind the other, without the padding between those of an array: a value
/// has 17 bytes, and would take 24. Behind them stand the bytes of texts that are short, but too long for a `String`
/// that has no memory of its own: that would take 80 bytes for one of 20.
///
/// Values stand where a value may not, so each is moved, bit by bit, to a place of its own before it is used. A text is
/// made anew whenever it is read as a value.
struct PackedValues {
  /// The bytes of a value.
  static let stride = MemoryLayout<Value>.size

  /// How many bytes texts have that stand behind the values. A longer one is shared rather than copied with its object.
  private static let textLengths = 16...64
  /// What the last byte of a place has where the value is such a text: no value has it, since it tells ten cases apart.
  private static let textMark: UInt8 = 0xFF

  /// Where a text stands, in the place of its value.
  private struct Text {
    let offset: UInt32
    let length: UInt32
  }

  private let start: UnsafeMutableRawPointer

  /// Values from here on, in memory of the caller.
  init(_ start: UnsafeMutablePointer<UInt8>) {
    self.start = UnsafeMutableRawPointer(start)
  }

  private func bytes(at index: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: start + index * Self.stride, count: Self.stride)
  }

  /// The value at an index.
  subscript(index: Int) -> Value {
    if let text = text(at: index) { return .string(String(decoding: text, as: UTF8.self)) }
    return value(at: index)
  }

  /// The value at an index, which is no text behind the values.
  private func value(at index: Int) -> Value {
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      UnsafeMutableRawBufferPointer(place).copyMemory(from: UnsafeRawBufferPointer(bytes(at: index)))
      return place[0]
    }
  }

  /// The bytes of the text at an index, where they stand behind the values.
  func text(at index: Int) -> UnsafeRawBufferPointer? {
    let bytes = bytes(at: index)
    guard bytes[Self.stride - 1] == Self.textMark else { return nil }
    let text = bytes.loadUnaligned(as: Text.self)
    return UnsafeRawBufferPointer(start: start + Int(text.offset), count: Int(text.length))
  }

  /// How many bytes the texts of so many values take, but for the one at an index.
  func textBytes(_ count: Int, without index: Int? = nil) -> Int {
    var textBytes = 0
    for place in 0..<count where place != index { textBytes += text(at: place)?.count ?? 0 }
    return textBytes
  }

  /// How many bytes a value takes behind the values.
  static func room(for value: Value) -> Int {
    guard case .string(let text) = value, textLengths.contains(text.utf8.count) else { return 0 }
    return text.utf8.count
  }

  /// Puts a value where there is none; `offset` is where there is room for the text that it may be. Gives how much of
  /// that it takes.
  @discardableResult
  func initialize(at index: Int, to value: Value, textAt offset: Int) -> Int {
    if case .string(var text) = value, Self.textLengths.contains(text.utf8.count) {
      return text.withUTF8 { initialize(at: index, toText: UnsafeRawBufferPointer($0), at: offset) }
    }
    put(value, at: index)
    return 0
  }

  private func put(_ value: Value, at index: Int) {
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      place.initialize(repeating: value)
      let content = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(place)[..<Self.stride])
      assert(content[Self.stride - 1] != Self.textMark)
      bytes(at: index).copyMemory(from: content)
    }
  }

  /// The same with the value that others have at the index.
  @discardableResult
  func initialize(at index: Int, from others: PackedValues, textAt offset: Int) -> Int {
    if let text = others.text(at: index) { return initialize(at: index, toText: text, at: offset) }
    put(others.value(at: index), at: index)
    return 0
  }

  private func initialize(at index: Int, toText text: UnsafeRawBufferPointer, at offset: Int) -> Int {
    UnsafeMutableRawBufferPointer(start: start + offset, count: text.count).copyMemory(from: text)
    let place = bytes(at: index)
    place.storeBytes(of: Text(offset: UInt32(offset), length: UInt32(text.count)), as: Text.self)
    place[Self.stride - 1] = Self.textMark
    return text.count
  }

  /// Takes the value at an index away.
  func deinitialize(at index: Int) {
    guard text(at: index) == nil else { return }
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      UnsafeMutableRawBufferPointer(place).copyMemory(from: UnsafeRawBufferPointer(bytes(at: index)))
      place.deinitialize()
    }
  }
}
