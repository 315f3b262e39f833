/// What an `ObjectRecord` holds besides the values.
struct RecordHeader {
  /// What the object is, in one word also where something ends it by itself, which is rare.
  private enum Kind {
    case lasting(Entity)
    case leased(LeasedEntity)
  }

  private final class LeasedEntity {
    let entity: Entity
    let lease: Lease

    init(_ entity: Entity, _ lease: Lease) {
      self.entity = entity
      self.lease = lease
    }
  }

  private var kind: Kind
  let reference: Reference
  var revision: Revision
  let createdAt: Revision
  // One word for both: a text of 4 GiB, and 64 GiB of memory, are more than an object ever has.
  private var textBytes: UInt32
  private var memoryUnits: UInt32

  private static let memoryUnit = 16

  init(
    _ reference: Reference, entity: Entity, revision: Revision, createdAt: Revision, size: ValueSize, lease: Lease?
  ) {
    self.reference = reference
    self.revision = revision
    self.createdAt = createdAt
    (textBytes, memoryUnits) = (0, 0)
    kind = Self.kind(entity, lease)
    self.size = size
  }

  /// The size of the object, as JSON without the names of its keys and in memory with all that it takes.
  var size: ValueSize {
    get { ValueSize(textBytes: Int(textBytes), memoryBytes: Int(memoryUnits) * Self.memoryUnit) }
    set {
      assert(newValue.memoryBytes % Self.memoryUnit == 0, "\(newValue.memoryBytes) is not a multiple")
      textBytes = UInt32(truncatingIfNeeded: newValue.textBytes)
      memoryUnits = UInt32(truncatingIfNeeded: newValue.memoryBytes / Self.memoryUnit)
    }
  }

  var entity: Entity {
    switch kind {
    case .lasting(let entity): entity
    case .leased(let leased): leased.entity
    }
  }

  var lease: Lease? {
    get {
      if case .leased(let leased) = kind { leased.lease } else { nil }
    }
    set { kind = Self.kind(entity, newValue) }
  }

  private static func kind(_ entity: Entity, _ lease: Lease?) -> Kind {
    lease.map { .leased(LeasedEntity(entity, $0)) } ?? .lasting(entity)
  }
}

/// The memory of an `ObjectRecord`: a header, and behind it the bytes of as many values as its entity has stored keys.
/// Where the entity wants it, the last revision that set one of some of them stands behind these: objects of other
/// entities do without its eight bytes. Last come the texts of `PackedValues`.
final class RecordStorage: ManagedBuffer<RecordHeader, UInt8> {
  /// The memory of an object with these values; `farRevision` is kept where the entity keeps it apart.
  static func make(_ header: RecordHeader, _ values: [Value], farRevision: Revision) -> RecordStorage {
    let textBytes = values.reduce(0) { $0 + PackedValues.room(for: $1) }
    return make(header, textBytes: textBytes, farRevision) { places, textOffset in
      var offset = textOffset
      for (index, value) in values.enumerated() {
        offset += places.initialize(at: index, to: value, textAt: offset)
      }
    }
  }

  /// Memory with room for texts of so many bytes. `fill` gets the places of the values, none of which has one yet, and
  /// where the texts begin.
  private static func make(
    _ header: RecordHeader, textBytes: Int, _ farRevision: Revision, fill: (PackedValues, Int) -> Void
  ) -> RecordStorage {
    let entity = header.entity
    let size = entity.storageCount * PackedValues.stride
    let keepsFarRevision = entity.farKeeping == .apart
    let textOffset = size + (keepsFarRevision ? MemoryLayout<Revision>.size : 0)
    let buffer = create(minimumCapacity: textOffset + textBytes) { _ in header }
    buffer.withUnsafeMutablePointerToElements { bytes in
      if keepsFarRevision { UnsafeMutableRawPointer(bytes + size).storeBytes(of: farRevision, as: Revision.self) }
      fill(PackedValues(bytes), textOffset)
    }
    return unsafeDowncast(buffer, to: RecordStorage.self)
  }

  /// The bytes of the memory of an entity's object, without texts.
  static func fixedBytes(of entity: Entity) -> Int {
    2 * MemoryLayout<Int>.size + MemoryLayout<RecordHeader>.size + entity.storageCount * PackedValues.stride
      + (entity.farKeeping == .apart ? MemoryLayout<Revision>.size : 0)
  }

  /// The last revision that set a key that computed keys of other objects read.
  var farRevision: Revision {
    get {
      withUnsafeMutablePointers { header, bytes in
        switch header.pointee.entity.farKeeping {
        case .creation: header.pointee.createdAt
        case .revision: header.pointee.revision
        case .apart: UnsafeRawPointer(Self.place(header, bytes)).loadUnaligned(as: Revision.self)
        }
      }
    }
    set {
      withUnsafeMutablePointers { header, bytes in
        guard header.pointee.entity.farKeeping == .apart else { return }
        UnsafeMutableRawPointer(Self.place(header, bytes)).storeBytes(of: newValue, as: Revision.self)
      }
    }
  }

  private static func place(
    _ header: UnsafeMutablePointer<RecordHeader>, _ bytes: UnsafeMutablePointer<UInt8>
  ) -> UnsafeMutablePointer<UInt8> {
    bytes + header.pointee.entity.storageCount * PackedValues.stride
  }

  deinit {
    withUnsafeMutablePointers { header, bytes in
      for index in 0..<header.pointee.entity.storageCount { PackedValues(bytes).deinitialize(at: index) }
    }
  }

  /// The same in memory of its own.
  func copy() -> RecordStorage {
    withUnsafeMutablePointers { header, bytes in
      let (count, values) = (header.pointee.entity.storageCount, PackedValues(bytes))
      return Self.make(header.pointee, textBytes: values.textBytes(count), farRevision) { places, textOffset in
        var offset = textOffset
        for place in 0..<count { offset += places.initialize(at: place, from: values, textAt: offset) }
      }
    }
  }

  /// The same in memory of its own, with another value at a place.
  func copy(with value: Value, at index: Int) -> RecordStorage {
    withUnsafeMutablePointers { header, bytes in
      let (count, values) = (header.pointee.entity.storageCount, PackedValues(bytes))
      precondition(index >= 0 && index < count)
      let textBytes = values.textBytes(count, without: index) + PackedValues.room(for: value)
      return Self.make(header.pointee, textBytes: textBytes, farRevision) { places, textOffset in
        var offset = textOffset
        for place in 0..<count {
          offset +=
            place == index
            ? places.initialize(at: place, to: value, textAt: offset)
            : places.initialize(at: place, from: values, textAt: offset)
        }
      }
    }
  }

  /// Runs `body` with the header, without the check of exclusive access that a property of a class has: every read of
  /// an object would pay for it. A pointer: to give it `inout` would be to change it, and others may be reading.
  func withHeader<Result>(_ body: (UnsafeMutablePointer<RecordHeader>) -> Result) -> Result {
    withUnsafeMutablePointerToHeader(body)
  }

  /// The value at a place.
  func value(at index: Int) -> Value {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      return PackedValues(bytes)[index]
    }
  }

  /// The bytes of the text at a place, where they stand in this memory.
  func text(at index: Int) -> UnsafeRawBufferPointer? {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      return PackedValues(bytes).text(at: index)
    }
  }

  /// Sets the value at a place; not to a text that wants room behind the values. That of one which stood there stays
  /// unused in this memory.
  func set(_ value: Value, at index: Int) {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount && PackedValues.room(for: value) == 0)
      PackedValues(bytes).deinitialize(at: index)
      PackedValues(bytes).initialize(at: index, to: value, textAt: 0)
    }
  }
}
