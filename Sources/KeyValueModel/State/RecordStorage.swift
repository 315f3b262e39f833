/// What an `ObjectRecord` holds besides the values.
struct RecordHeader {
  let entity: Entity
  let reference: Reference
  var revision: Revision
  let createdAt: Revision
  var textBytes: Int
  var lease: Lease?
}

/// The memory of an `ObjectRecord`: a header, and behind it as many values as its entity has stored keys.
final class RecordStorage: ManagedBuffer<RecordHeader, Value> {
  /// The memory of an object with these values.
  static func make(_ header: RecordHeader, _ values: [Value]) -> RecordStorage {
    values.withUnsafeBufferPointer { make(header, copying: $0) }
  }

  private static func make(_ header: RecordHeader, copying values: UnsafeBufferPointer<Value>) -> RecordStorage {
    let buffer = create(minimumCapacity: values.count) { _ in header }
    if let start = values.baseAddress {
      buffer.withUnsafeMutablePointerToElements { $0.initialize(from: start, count: values.count) }
    }
    return unsafeDowncast(buffer, to: RecordStorage.self)
  }

  deinit {
    _ = withUnsafeMutablePointers { header, values in
      values.deinitialize(count: header.pointee.entity.storageCount)
    }
  }

  /// The same in memory of its own.
  func copy() -> RecordStorage {
    withUnsafeMutablePointers { header, values in
      let count = header.pointee.entity.storageCount
      return Self.make(header.pointee, copying: UnsafeBufferPointer(start: values, count: count))
    }
  }

  /// Runs `body` with the header, without the check of exclusive access that a property of a class has: every read of
  /// an object would pay for it.
  func withHeader<Result>(_ body: (inout RecordHeader) -> Result) -> Result {
    withUnsafeMutablePointerToHeader { body(&$0.pointee) }
  }

  /// The value at a place.
  func value(at index: Int) -> Value {
    withUnsafeMutablePointers { header, values in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      return values[index]
    }
  }

  /// Sets the value at a place.
  func set(_ value: Value, at index: Int) {
    withUnsafeMutablePointers { header, values in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      values[index] = value
    }
  }
}
