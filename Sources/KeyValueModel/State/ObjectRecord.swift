/// The number of a committed transaction: 0 for the empty store, one more for each.
public typealias Revision = UInt64

/// One object at some revision.
///
/// A value of one word: its contents are in one allocation, which copies share until one of them is changed. A state of
/// many objects thus takes one allocation for each, and a lookup costs one reference count.
///
/// `@unchecked Sendable`, and so are its values: memory with more than one owner is never mutated.
public struct ObjectRecord: @unchecked Sendable {
  private var storage: RecordStorage

  /// Creates the record of an object. `values` has one value for each stored key, in the order of `Key.storage`.
  /// Without `farRevision`, `revision` may have set keys that computed keys of other objects read.
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

  /// The reference of the object.
  package var reference: Reference { storage.withHeader { $0.pointee.reference } }

  /// Returns true if the object has this reference.
  func isNamed(_ reference: Reference) -> Bool { storage.withHeader { $0.pointee.reference == reference } }

  /// The entity of the object.
  public var entity: Entity { storage.withHeader { $0.pointee.entity } }

  /// The last revision that set a stored key.
  public var revision: Revision { storage.withHeader { $0.pointee.revision } }

  /// The last revision that set a stored key that computed keys of other objects read.
  package var farRevision: Revision { storage.farRevision }

  /// Notes that a revision set a stored key, and whether computed keys of other objects read it.
  mutating func noteSetting(by revision: Revision, isReadFromAfar: Bool = true) {
    makeUnique()
    storage.withHeader { $0.pointee.revision = revision }
    if isReadFromAfar { storage.farRevision = revision }
  }

  /// The revision that created the object.
  public var createdAt: Revision { storage.withHeader { $0.pointee.createdAt } }

  /// The values of the stored keys, by `Key.storage`.
  public var values: Values { Values(storage: storage) }

  /// The value of the attribute at an index of the entity's keys.
  package func attribute(at key: Int) -> Value { values[Int(entity.layout.columns[key].storage)] }

  /// The size of the object, stored so that a change need not measure all values.
  package var size: ValueSize { storage.withHeader { $0.pointee.size } }

  /// The approximate number of bytes of the values as JSON.
  package var textBytes: Int { size.textBytes }

  /// The bytes of memory that the object takes, including its share of the indexes of a state.
  package var memoryBytes: Int { size.memoryBytes }

  /// Returns the size of an object with these values, measured anew. O(n) in their size.
  static func size(
    of values: some Collection<Value>, _ entity: Entity, _ reference: Reference, _ lease: Lease?
  ) -> ValueSize {
    var size = ValueSize(memoryBytes: entity.recordBytes(of: reference) + (lease == nil ? 0 : Allocation.lease))
    for (storage, value) in values.enumerated() { size += entity.size(of: value, at: storage) }
    return size
  }

  /// The lease that ends the object, or nil if it has none.
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

  /// Sets the value of a stored key. `growth` is the change of the object's size, possibly negative.
  mutating func set(_ value: Value, at index: Int, growth: ValueSize) {
    if PackedValues.room(for: value) == 0, isKnownUniquelyReferenced(&storage) {
      storage.set(value, at: index)
    } else {
      storage = storage.copy(with: value, at: index)
    }
    storage.withHeader { $0.pointee.size += growth }
  }

  /// Sets the value of a stored key, and measures it and the previous one in full.
  mutating func set(_ value: Value, at index: Int) {
    let entity = entity
    set(value, at: index, growth: entity.size(of: value, at: index) - entity.size(of: values[index], at: index))
  }

  /// Returns the object with another value of the stored key of a column, set by `revision`.
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

  /// Appends the object in the form of the specification, section 3. `appendComputed` appends the value of a computed
  /// key, which it gets by its index. Stops soon after there are more than `limit` bytes.
  package func appendJSON(
    of reference: Reference, to bytes: inout [UInt8], upTo limit: Int,
    appendComputed: (_ key: Int, _ bytes: inout [UInt8]) -> Void
  ) {
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: reference.text.utf8)
    bytes.append(contentsOf: "\",\"@revision\":".utf8)
    bytes.appendDecimal(revision)
    lease?.appendMember(to: &bytes)
    let (layout, values) = (entity.layout, values)
    for (key, column) in layout.columns.enumerated() {
      bytes.append(contentsOf: layout.names[Int(column.nameStart)..<Int(column.nameEnd)])
      if column.storage >= 0 {
        values.appendJSON(at: Int(column.storage), to: &bytes, upTo: limit)
      } else {
        appendComputed(key, &bytes)
      }
      if bytes.count > limit { return }
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// The values of an object's stored keys.
  public struct Values: RandomAccessCollection, Equatable, @unchecked Sendable {
    fileprivate let storage: RecordStorage

    /// The first index.
    public var startIndex: Int { 0 }

    /// The number of values.
    public var endIndex: Int { storage.withHeader { $0.pointee.entity.storageCount } }

    /// The value at an index, which is a `Key.storage`.
    public subscript(index: Int) -> Value { storage.value(at: index) }

    /// Appends the value at an index as `Value.appendJSON(to:upTo:)` does, without copying a text.
    func appendJSON(at index: Int, to bytes: inout [UInt8], upTo limit: Int) {
      if let text = storage.text(at: index), text.count <= limit - bytes.count {
        withExtendedLifetime(storage) { bytes.appendJSONString(text) }
      } else {
        self[index].appendJSON(to: &bytes, upTo: limit)
      }
    }

    /// Returns the `approximateBytes` of the value at an index, without copying a text.
    func approximateBytes(at index: Int) -> Int {
      storage.text(at: index).map { 32 + $0.count } ?? self[index].approximateBytes
    }

    /// Returns true if the values are equal, one by one.
    public static func == (left: Values, right: Values) -> Bool {
      left.storage === right.storage || left.elementsEqual(right)
    }
  }
}

extension Entity {
  /// Returns the size of the value of a stored key, including what the state needs to find the objects that name
  /// others.
  fileprivate func size(of value: Value, at storage: Int) -> ValueSize {
    var size = value.storedSize
    if case .members(let list) = value { size.memoryBytes += referrerBytes(of: list.count, at: storage) }
    return size
  }

  /// Returns the bytes of memory that a state needs to find the holder of this many members; 0 if they have an inverse.
  func referrerBytes(of count: Int, at storage: Int) -> Int {
    referenceStorage.contains(storage) ? Allocation.referrer * count : 0
  }

  /// Returns the bytes of memory that one object takes besides its values, including its share of the trees and indexes
  /// of a state.
  fileprivate func recordBytes(of reference: Reference) -> Int {
    Allocation.bytes(RecordStorage.fixedBytes(of: self)) + Allocation.text(of: reference.text.utf8.count)
      + Allocation.treeEntry + Allocation.indexEntry * indexedKeys.count + Allocation.link * referenceStorage.count
  }
}

extension Value {
  /// The size of the value as that of a stored key, where a short text is in the memory of its object.
  var storedSize: ValueSize {
    let room = PackedValues.room(for: self)
    var size = size
    if room > 0 { size.memoryBytes = Allocation.rounded(room) }
    return size
  }
}

/// The memory of an `ObjectRecord`: a header, followed by the bytes of one value for each stored key of its entity.
///
/// If the entity stores it apart, the last revision that set one of certain keys follows: objects of other entities do
/// not need its eight bytes. The texts of `PackedValues` come last.
private final class RecordStorage: ManagedBuffer<RecordHeader, UInt8> {
  /// Creates the memory of an object with these values. `farRevision` is stored if the entity stores it apart.
  static func make(_ header: RecordHeader, _ values: [Value], farRevision: Revision) -> RecordStorage {
    let textBytes = values.reduce(0) { $0 + PackedValues.room(for: $1) }
    return make(header, textBytes: textBytes, farRevision) { places, textOffset in
      var offset = textOffset
      for (index, value) in values.enumerated() {
        offset += places.initialize(at: index, to: value, textAt: offset)
      }
    }
  }

  /// Creates memory with room for texts of `textBytes` bytes. `fill` receives the places of the values, none of which
  /// is initialized, and the offset of the texts.
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

  /// Returns the bytes of the memory of an entity's object, without texts.
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

  /// Returns a copy in memory of its own.
  func copy() -> RecordStorage {
    withUnsafeMutablePointers { header, bytes in
      let (count, values) = (header.pointee.entity.storageCount, PackedValues(bytes))
      return Self.make(header.pointee, textBytes: values.textBytes(count), farRevision) { places, textOffset in
        var offset = textOffset
        for place in 0..<count { offset += places.initialize(at: place, from: values, textAt: offset) }
      }
    }
  }

  /// Returns a copy in memory of its own, with another value at an index.
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

  /// Calls `body` with the header, without the check of exclusive access that a stored property of a class has, which
  /// would slow down every read of an object. Passes a pointer: `inout` would be a mutation, while others may be
  /// reading.
  func withHeader<Result>(_ body: (UnsafeMutablePointer<RecordHeader>) -> Result) -> Result {
    withUnsafeMutablePointerToHeader(body)
  }

  /// Returns the value at an index.
  func value(at index: Int) -> Value {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      return PackedValues(bytes)[index]
    }
  }

  /// Returns the bytes of the text at an index, or nil if they are not in this memory.
  func text(at index: Int) -> UnsafeRawBufferPointer? {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount)
      return PackedValues(bytes).text(at: index)
    }
  }

  /// Sets the value at an index, which must not be a text that needs room after the values. The bytes of a previous
  /// text remain unused in this memory.
  func set(_ value: Value, at index: Int) {
    withUnsafeMutablePointers { header, bytes in
      precondition(index >= 0 && index < header.pointee.entity.storageCount && PackedValues.room(for: value) == 0)
      PackedValues(bytes).deinitialize(at: index)
      PackedValues(bytes).initialize(at: index, to: value, textAt: 0)
    }
  }
}

/// The contents of an `ObjectRecord` other than the values.
private struct RecordHeader {
  /// The entity, in one word even if the object has a lease, which is rare.
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
  // One word for both: no object reaches a text of 4 GiB, or 64 GiB of memory.
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

  /// The size of the object: as JSON without the names of its keys, and in memory with everything that it takes.
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

/// The values of an object in its memory, without the padding of an array: a value has 17 bytes, and would take 24.
/// They are followed by the bytes of texts that are short, but too long for a `String` without memory of its own: that
/// would take 80 bytes for a text of 20.
///
/// Values are not aligned, so each is copied, bit by bit, to an aligned place before it is used. A text is created anew
/// whenever it is read as a value.
private struct PackedValues {
  /// The number of bytes of a value.
  static let stride = MemoryLayout<Value>.size

  /// The lengths in bytes of texts that are stored after the values. Longer ones are shared rather than copied with
  /// their object.
  private static let textLengths = 16...64
  /// The last byte of the place of such a text. No value has this byte there, since values distinguish only ten cases.
  private static let textMark: UInt8 = 0xFF

  /// The position of a text, stored in the place of its value.
  private struct Text {
    let offset: UInt32
    let length: UInt32
  }

  private let start: UnsafeMutableRawPointer

  /// Creates the values that start here, in memory that the caller owns.
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

  /// Returns the value at an index, which must not be a text after the values.
  private func value(at index: Int) -> Value {
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      UnsafeMutableRawBufferPointer(place).copyMemory(from: UnsafeRawBufferPointer(bytes(at: index)))
      return place[0]
    }
  }

  /// Returns the bytes of the text at an index, or nil if it is not stored after the values.
  func text(at index: Int) -> UnsafeRawBufferPointer? {
    let bytes = bytes(at: index)
    guard bytes[Self.stride - 1] == Self.textMark else { return nil }
    let text = bytes.loadUnaligned(as: Text.self)
    return UnsafeRawBufferPointer(start: start + Int(text.offset), count: Int(text.length))
  }

  /// Returns the total bytes of the texts of the first `count` values, except for the one at an index.
  func textBytes(_ count: Int, without index: Int? = nil) -> Int {
    var textBytes = 0
    for place in 0..<count where place != index { textBytes += text(at: place)?.count ?? 0 }
    return textBytes
  }

  /// Returns the number of bytes that a value takes after the values.
  static func room(for value: Value) -> Int {
    guard case .string(let text) = value, textLengths.contains(text.utf8.count) else { return 0 }
    return text.utf8.count
  }

  /// Initializes the value at an index. `offset` is the place for its bytes if it is a text. Returns the number of
  /// these bytes.
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

  /// Initializes the value at an index with that of `others` at the same index.
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

  /// Deinitializes the value at an index.
  func deinitialize(at index: Int) {
    guard text(at: index) == nil else { return }
    withUnsafeTemporaryAllocation(of: Value.self, capacity: 1) { place in
      UnsafeMutableRawBufferPointer(place).copyMemory(from: UnsafeRawBufferPointer(bytes(at: index)))
      place.deinitialize()
    }
  }
}
