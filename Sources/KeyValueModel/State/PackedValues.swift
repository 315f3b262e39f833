/// Values in memory one behind the other, without the padding between those of an array: a value has 17 bytes, and
/// would take 24.
///
/// They stand where a value may not, so each is moved, bit by bit, to a place of its own before it is used.
struct PackedValues {
  /// The bytes of a value.
  static let stride = MemoryLayout<Value>.size

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
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      UnsafeMutableRawBufferPointer(place).copyMemory(from: UnsafeRawBufferPointer(bytes(at: index)))
      return place[0]
    }
  }

  /// Puts a value where there is none.
  func initialize(at index: Int, to value: Value) {
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      place.initialize(repeating: value)
      bytes(at: index).copyMemory(from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(place)[..<Self.stride]))
    }
  }

  /// Takes the value at an index away.
  func deinitialize(at index: Int) {
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      UnsafeMutableRawBufferPointer(place).copyMemory(from: UnsafeRawBufferPointer(bytes(at: index)))
      place.deinitialize()
    }
  }
}
