/// The size of a value or an object: as JSON, to which limits refer, and in memory.
///
/// The two differ widely: each element of `[[],[],[]]` has three bytes of text and takes 24 bytes of memory, and each
/// element of `[{},{},{}]` takes 72.
package struct ValueSize: Hashable, Sendable {
  /// The approximate length of the JSON text, in bytes.
  package var textBytes = 0
  /// The memory that it takes beside its own place, in bytes; a multiple of 16. Counts the blocks of the allocator, not
  /// only the sizes requested from it.
  package var memoryBytes = 0

  static func + (left: ValueSize, right: ValueSize) -> ValueSize {
    ValueSize(
      textBytes: left.textBytes + right.textBytes, memoryBytes: left.memoryBytes + right.memoryBytes)
  }

  static func - (left: ValueSize, right: ValueSize) -> ValueSize {
    ValueSize(
      textBytes: left.textBytes - right.textBytes, memoryBytes: left.memoryBytes - right.memoryBytes)
  }

  static func += (left: inout ValueSize, right: ValueSize) { left = left + right }
}

extension ValueSize {
  /// The size of values as members of a list, without that of the list.
  init(ofMembers members: some Sequence<Value>) {
    self.init()
    for member in members { self += member.memberSize }
  }
}

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

  /// The size of the value as a member of an array, with its comma.
  fileprivate var memberSize: ValueSize {
    var size = size
    size.textBytes += 1
    return size
  }

  /// The approximate length of its JSON text, in bytes: escapes are not counted, and a double counts 8. O(n), without a
  /// copy.
  package var textBytes: Int { size.textBytes }

  private static func size(of text: String) -> ValueSize {
    let count = text.utf8.count
    return ValueSize(textBytes: count + 2, memoryBytes: Allocation.text(of: count))
  }

  /// The number of decimal digits of a number, or one more: 1233/4096 is about log₁₀ 2.
  private static func digits(of magnitude: UInt64) -> Int {
    ((64 - magnitude.leadingZeroBitCount) * 1233) >> 12 + 1
  }

  /// The approximate number of bytes of memory that it keeps alive, not counting the members of a collection. O(n).
  package var approximateBytes: Int {
    switch self {
    case .string(let text): 32 + text.utf8.count
    case .array(let elements): elements.reduce(48) { $0 + $1.approximateBytes }
    case .object(let object): object.members.reduce(64) { $0 + 32 + $1.key.utf8.count + $1.value.approximateBytes }
    // The list shares its members with its versions before and after a change, except for the path to the change.
    case .members: 512
    default: 32
    }
  }
}

/// The memory that allocated blocks take, by the layouts of Swift's standard library and of glibc's allocator, whose
/// blocks are multiples of 16 bytes with 8 bytes of overhead in each. Every figure is a multiple of 16.
enum Allocation {
  /// The sizes of the headers of Swift's objects, arrays and strings, in bytes.
  private static let headerBytes = 16
  private static let arrayHeaderBytes = 32
  /// The longest text that a `String` holds without an allocation, in bytes.
  private static let shortTextBytes = 15
  /// The number of members from which on a JSON object has a hash table.
  private static let hashedCount = 16

  /// A member of a long ordered list: an entry of 48 bytes with its label, and one of a hash table, in nodes that are
  /// about two thirds full.
  static let labelledMember = 144
  /// A member of a long unordered list: 24 bytes in nodes that are about two thirds full.
  static let sortedMember = 48
  /// A member of a collection without inverse: an entry of a hash table, and the holder in a set of its own.
  static let referrer = 160
  /// A to-one without inverse: 24 bytes in nodes that are about two thirds full.
  static let link = 48
  /// An entry in the tree of objects.
  static let treeEntry = 32
  /// An entry in an index: an entry of a hash table, and a set.
  static let indexEntry = 160
  /// A lease, and its entry in the table of the store.
  static let lease = 320

  /// The size of the block that the allocator returns for a size.
  static func bytes(_ size: Int) -> Int { max(32, rounded(size + 8)) }

  /// The next multiple of 16.
  static func rounded(_ size: Int) -> Int { (size + 15) & ~15 }

  /// The memory of a text of `count` bytes of UTF-8.
  static func text(of count: Int) -> Int { count > shortTextBytes ? bytes(arrayHeaderBytes + count + 1) : 0 }

  /// The memory of an array with room for `capacity` elements.
  static func array(of capacity: Int, stride: Int) -> Int {
    capacity > 0 ? bytes(arrayHeaderBytes + capacity * stride) : 0
  }

  /// The capacity of an array to which `count` elements were appended: it doubles when it grows.
  static func grown(_ count: Int) -> Int {
    count > 1 ? 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount) : count
  }

  /// The memory of a JSON object with `count` members, without the texts of their names and without their values.
  fileprivate static func object(of count: Int) -> Int {
    let box = bytes(headerBytes + MemoryLayout<JSONObject>.size)
    let room = grown(count)
    let table = count >= hashedCount ? bytes(arrayHeaderBytes + 2 * room) : 0
    return box + table + array(of: room, stride: MemoryLayout<String>.stride)
      + array(of: room, stride: MemoryLayout<Value>.stride)
  }
}
