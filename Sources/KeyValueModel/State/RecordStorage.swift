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
  var textBytes: Int

  init(
    _ reference: Reference, entity: Entity, revision: Revision, createdAt: Revision, textBytes: Int, lease: Lease?
  ) {
    self.reference = reference
    self.revision = revision
    self.createdAt = createdAt
    self.textBytes = textBytes
    kind = Self.kind(entity, lease)
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
/// entities do without its eight bytes.
final class RecordStorage: ManagedBuffer<RecordHeader, UInt8> {
  /// The memory of an object with these values; `farRevision` is kept where the entity keeps it apart.
  static func make(
    _ header: RecordHeader, _ values: some Collection<Value>, farRevision: Revision
  ) -> RecordStorage {
    let size = values.count * PackedValues.stride
    let keepsFarRevision = header.entity.farKeeping == .apart
    let buffer = create(minimumCapacity: size + (keepsFarRevision ? MemoryLayout<Revision>.size : 0)) { _ in header }
    buffer.withUnsafeMutablePointerToElements { bytes in
      for (index, value) in values.enumerated() { PackedValues(bytes).initialize(at: index, to: value) }
      if keepsFarRevision { UnsafeMutableRawPointer(bytes + size).storeBytes(of: farRevision, as: Revision.self) }
    }
    return unsafeDowncast(buffer, to: RecordStorage.self)
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
      Self.make(
        header.pointee, (0..<header.pointee.entity.storageCount).lazy.map { PackedValues(bytes)[$0] },
        farRevision: farRevision)
    }
  }

  /// The same in memory of its own, with another value at a place.
  func copy(with value: Value, at index: Int) -> RecordStorage {
    withUnsafeMutablePointers { header, bytes in
      let count = header.pointee.entity.storageCount
      precondition(index >= 0 && index < count)
      return Self.make(
        header.pointee, (0..<count).lazy.map { $0 == index ? value : PackedValues(bytes)[$0] },
        farRevision: farRevision)
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

  /// Sets the value at a place.
  func set(_ value: Value, at index: Int) {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      PackedValues(bytes).deinitialize(at: index)
      PackedValues(bytes).initialize(at: index, to: value)
    }
  }
}
