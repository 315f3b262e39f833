/// The number of a committed transaction: 0 for the empty store, one more for each.
public typealias Revision = UInt64

/// One object as it stands at some revision.
///
/// A value of one word: what it holds is in one piece of memory, which copies share until one of them is changed. So a
/// state of many objects takes one allocation for each, and looking one up costs one reference count.
///
/// `@unchecked Sendable`, and so are its values: memory that has more than one owner is never changed.
public struct ObjectRecord: @unchecked Sendable {
  private var storage: RecordStorage

  /// An object as it stood. `values` has one for each stored key, in the order of `Key.storage`; without
  /// `farRevision`, any of these may have been read from afar.
  package init(
    _ reference: Reference, entity: Entity, revision: Revision, createdAt: Revision, values: [Value],
    lease: Lease? = nil, farRevision: Revision? = nil
  ) {
    precondition(values.count == entity.storageCount)
    let size = Self.size(of: values, entity, reference, lease)
    let header = RecordHeader(
      reference, entity: entity, revision: revision, createdAt: createdAt, size: size, lease: lease)
    storage = RecordStorage.make(header, values, farRevision: farRevision ?? revision)
  }

  /// The name of the object.
  package var reference: Reference { storage.withHeader { $0.pointee.reference } }

  /// Whether it is the object of this name.
  func isNamed(_ reference: Reference) -> Bool { storage.withHeader { $0.pointee.reference == reference } }

  /// What kind of object it is.
  public var entity: Entity { storage.withHeader { $0.pointee.entity } }

  /// The last revision that set a stored key.
  public var revision: Revision { storage.withHeader { $0.pointee.revision } }

  /// The last revision that set a stored key that computed keys of other objects read.
  package var farRevision: Revision { storage.farRevision }

  /// Notes that a revision set a stored key, which computed keys of other objects may read.
  mutating func noteSetting(by revision: Revision, isReadFromAfar: Bool = true) {
    makeUnique()
    storage.withHeader { $0.pointee.revision = revision }
    if isReadFromAfar { storage.farRevision = revision }
  }

  /// The revision that made the object.
  public var createdAt: Revision { storage.withHeader { $0.pointee.createdAt } }

  /// The values of the stored keys, by `Key.storage`.
  public var values: Values { Values(storage: storage) }

  /// The value of the attribute at an index of the entity's keys.
  package func attribute(at key: Int) -> Value { values[Int(entity.layout.columns[key].storage)] }

  /// The size of the object: kept, so that a change does not look at all values.
  package var size: ValueSize { storage.withHeader { $0.pointee.size } }

  /// About how many bytes the values have as JSON.
  package var textBytes: Int { size.textBytes }

  /// The bytes of memory that the object takes, its share of what a state keeps to find it included.
  package var memoryBytes: Int { size.memoryBytes }

  /// The size of an object with these values, counted anew. O(n) in them.
  static func size(
    of values: some Collection<Value>, _ entity: Entity, _ reference: Reference, _ lease: Lease?
  ) -> ValueSize {
    var size = ValueSize(memoryBytes: entity.recordBytes(of: reference) + (lease == nil ? 0 : Allocation.lease))
    for (storage, value) in values.enumerated() { size += entity.size(of: value, at: storage) }
    return size
  }

  /// What ends the object by itself; nil where nothing does.
  package internal(set) var lease: Lease? {
    get { storage.withHeader { $0.pointee.lease } }
    set {
      makeUnique()
      storage.withHeader { header in
        let leases = (newValue == nil ? 0 : 1) - (header.pointee.lease == nil ? 0 : 1)
        header.pointee.size.memoryBytes += leases * Allocation.lease
        header.pointee.lease = newValue
      }
    }
  }

  /// Sets the value of a stored key, which makes the object larger by `growth`, or smaller.
  mutating func set(_ value: Value, at index: Int, growth: ValueSize) {
    if PackedValues.room(for: value) == 0, isKnownUniquelyReferenced(&storage) {
      storage.set(value, at: index)
    } else {
      storage = storage.copy(with: value, at: index)
    }
    storage.withHeader { $0.pointee.size += growth }
  }

  /// The same for a value that may be looked at as a whole, as the one before it.
  mutating func set(_ value: Value, at index: Int) {
    let entity = entity
    set(value, at: index, growth: entity.size(of: value, at: index) - entity.size(of: values[index], at: index))
  }

  /// The same object with another value of the stored key of a column, set by `revision`.
  func setting(_ value: Value, of column: RecordLayout.Column, growth: ValueSize, revision: Revision) -> ObjectRecord {
    var record = self
    record.storage = storage.copy(with: value, at: Int(column.storage))
    record.storage.withHeader { header in
      header.pointee.size += growth
      header.pointee.revision = revision
    }
    if column.isReadFromAfar { record.storage.farRevision = revision }
    return record
  }

  private mutating func makeUnique() {
    if !isKnownUniquelyReferenced(&storage) { storage = storage.copy() }
  }

  /// The values of an object's stored keys.
  public struct Values: RandomAccessCollection, Equatable, @unchecked Sendable {
    fileprivate let storage: RecordStorage

    /// The first place.
    public var startIndex: Int { 0 }

    /// How many values there are.
    public var endIndex: Int { storage.withHeader { $0.pointee.entity.storageCount } }

    /// The value at a place, a `Key.storage`.
    public subscript(index: Int) -> Value { storage.value(at: index) }

    /// Appends the value at a place as `Value.appendJSON(to:upTo:)` does, without a copy of a text.
    func appendJSON(at index: Int, to bytes: inout [UInt8], upTo limit: Int) {
      if let text = storage.text(at: index), text.count <= limit - bytes.count {
        withExtendedLifetime(storage) { bytes.appendJSONString(text) }
      } else {
        self[index].appendJSON(to: &bytes, upTo: limit)
      }
    }

    /// What `Value.approximateBytes` gives for the value at a place, without a copy of a text.
    func approximateBytes(at index: Int) -> Int {
      storage.text(at: index).map { 32 + $0.count } ?? self[index].approximateBytes
    }

    /// Whether the values are equal, one by one.
    public static func == (left: Values, right: Values) -> Bool {
      left.storage === right.storage || left.elementsEqual(right)
    }
  }
}

extension Entity {
  /// The size of the value of a stored key, with what the state keeps to find the objects that name others.
  fileprivate func size(of value: Value, at storage: Int) -> ValueSize {
    var size = value.storedSize
    if case .members(let list) = value { size.memoryBytes += referrerBytes(of: list.count, at: storage) }
    return size
  }

  /// The bytes of memory by which a state finds the holder of so many members; 0 where they have an inverse.
  func referrerBytes(of count: Int, at storage: Int) -> Int {
    referenceStorage.contains(storage) ? Allocation.referrer * count : 0
  }

  /// The bytes of memory that one object takes beside its values, its share of the trees and indexes of a state
  /// included.
  fileprivate func recordBytes(of reference: Reference) -> Int {
    Allocation.bytes(RecordStorage.fixedBytes(of: self)) + Allocation.text(of: reference.text.utf8.count)
      + Allocation.treeEntry + Allocation.indexEntry * indexedKeys.count + Allocation.link * referenceStorage.count
  }
}

extension Value {
  /// The size of the value as that of a stored key. A short text takes room in the memory of its object there.
  var storedSize: ValueSize {
    let room = PackedValues.room(for: self)
    var size = size
    if room > 0 { size.memoryBytes = Allocation.rounded(room) }
    return size
  }
}

/// The memory of an `ObjectRecord`: a header, and behind it the bytes of as many values as its entity has stored keys.
/// Where the entity wants it, the last revision that set one of some of them stands behind these: objects of other
/// entities do without its eight bytes. Last come the texts of `PackedValues`.
private final class RecordStorage: ManagedBuffer<RecordHeader, UInt8> {
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

/// What an `ObjectRecord` holds besides the values.
private struct RecordHeader {
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

/// The values of an object in its memory, one behind the other, without the padding between those of an array: a value
/// has 17 bytes, and would take 24. Behind them stand the bytes of texts that are short, but too long for a `String`
/// that has no memory of its own: that would take 80 bytes for one of 20.
///
/// Values stand where a value may not, so each is moved, bit by bit, to a place of its own before it is used. A text is
/// made anew whenever it is read as a value.
private struct PackedValues {
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
