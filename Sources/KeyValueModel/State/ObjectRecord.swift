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
