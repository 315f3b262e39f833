extension Entity {
  /// The size of the value of a stored key, with what the state keeps to find the objects that name others.
  func size(of value: Value, at storage: Int) -> ValueSize {
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
  func recordBytes(of reference: Reference) -> Int {
    Allocation.bytes(RecordStorage.fixedBytes(of: self)) + Allocation.text(of: reference.text.utf8.count)
      + Allocation.treeEntry + Allocation.indexEntry * indexedKeys.count + Allocation.link * referenceStorage.count
  }
}
