extension Value {
  /// The size of the value, counted in one pass. O(n), without a copy.
  package var size: ValueSize {
    switch self {
    case .null, .bool: return ValueSize(textBytes: 4)
    case .integer(let integer):
      return ValueSize(textBytes: Self.digits(of: integer.magnitude) + (integer < 0 ? 1 : 0))
    case .number, .rounded: return ValueSize(textBytes: 8)
    case .string(let text): return Self.size(of: text)
    case .reference(let reference): return Self.size(of: reference.text)
    case .array(let elements):
      let memory = Allocation.array(of: elements.capacity, stride: MemoryLayout<Value>.stride)
      return elements.reduce(into: ValueSize(textBytes: 2, memoryBytes: memory)) { $0 += $1.memberSize }
    case .members(let list):
      return list.reduce(into: ValueSize(textBytes: 2, memoryBytes: list.structureBytes)) { $0 += $1.memberSize }
    case .object(let object):
      var size = ValueSize(textBytes: 2, memoryBytes: Allocation.object(of: object.members.count))
      for (name, value) in object.members {
        size += value.memberSize
        size += ValueSize(textBytes: name.utf8.count + 3, memoryBytes: Allocation.text(of: name.utf8.count))
      }
      return size
    }
  }

  /// The size of the value as that of a stored key. A short text takes room in the memory of its object there.
  var storedSize: ValueSize {
    let room = PackedValues.room(for: self)
    var size = size
    if room > 0 { size.memoryBytes = Allocation.rounded(room) }
    return size
  }

  /// The size of the value as a member of an array, with its comma.
  var memberSize: ValueSize {
    var size = size
    size.textBytes += 1
    return size
  }

  /// About how many bytes its JSON text has: escapes are not counted, and a double counts 8. O(n), without a copy.
  package var textBytes: Int { size.textBytes }

  private static func size(of text: String) -> ValueSize {
    let count = text.utf8.count
    return ValueSize(textBytes: count + 2, memoryBytes: Allocation.text(of: count))
  }

  /// How many decimal digits a number has, or one more: 1233/4096 is about log₁₀ 2.
  private static func digits(of magnitude: UInt64) -> Int {
    ((64 - magnitude.leadingZeroBitCount) * 1233) >> 12 + 1
  }
}

extension ValueSize {
  /// The size of values as members of a list, without that of the list.
  init(ofMembers members: some Sequence<Value>) {
    self.init()
    for member in members { self += member.memberSize }
  }
}

extension MemberList {
  /// The bytes of memory that the list takes without the texts of its members. O(1).
  var structureBytes: Int {
    switch storage {
    case .few(let members):
      Allocation.array(of: Allocation.grown(members.count), stride: MemoryLayout<Value>.stride)
    case .labelled(let box): Allocation.labelledMember * box[0].count
    case .sorted(let members): Allocation.sortedMember * members.count
    }
  }

  /// The growth of an object whose collection was `old` and is this list, by the members that went and came.
  func growth(
    from old: MemberList, removed: some Sequence<Value>, inserted: some Sequence<Value>
  ) -> ValueSize {
    var growth = ValueSize(ofMembers: inserted) - ValueSize(ofMembers: removed)
    growth.memoryBytes += structureBytes - old.structureBytes
    return growth
  }
}

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
