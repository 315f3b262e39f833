/// The size of a value or an object: as JSON, which limits name, and in memory, which it really takes.
///
/// The two differ by much: of `[[],[],[]]` each element has three bytes of text and takes 24 of memory, and of
/// `[{},{},{}]` each takes 72.
package struct ValueSize: Hashable, Sendable {
  /// About how many bytes the JSON text has.
  package var textBytes = 0
  /// The bytes of memory that it takes beside its own place, a multiple of 16. The allocator's pieces are counted, not
  /// only what is asked of it.
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

  /// About how many bytes of memory it keeps alive; the members of a collection are not counted. O(n).
  package var approximateBytes: Int {
    switch self {
    case .string(let text): 32 + text.utf8.count
    case .array(let elements): elements.reduce(48) { $0 + $1.approximateBytes }
    case .object(let object): object.members.reduce(64) { $0 + 32 + $1.key.utf8.count + $1.value.approximateBytes }
    // Its members are shared with the list before and after, but for the path to what changed.
    case .members: 512
    default: 32
    }
  }
}

/// The bytes that pieces of memory take, by the layouts of Swift's standard library and of glibc's allocator, whose
/// pieces are multiples of 16 bytes with 8 of its own in each. Every figure is a multiple of 16.
enum Allocation {
  /// The sizes of the headers of Swift's objects, arrays and strings, in bytes.
  private static let headerBytes = 16
  private static let arrayHeaderBytes = 32
  /// The longest text that a `String` holds without a piece of memory, in bytes.
  private static let shortTextBytes = 15
  /// From how many members on a JSON object has a hash table.
  private static let hashedCount = 16

  /// A member of a long ordered list: an entry of 48 bytes with its label, and one of a hash table, in nodes that are
  /// about two thirds full.
  static let labelledMember = 144
  /// A member of a long unordered list: 24 bytes in nodes that are about two thirds full.
  static let sortedMember = 48
  /// A member of a collection without inverse: an entry of a hash table, and in a set of its own the holder.
  static let referrer = 160
  /// A to-one without inverse: 24 bytes in nodes that are about two thirds full.
  static let link = 48
  /// A place in the tree of the objects.
  static let treeEntry = 32
  /// A place in an index: an entry of a hash table, and a set.
  static let indexEntry = 160
  /// A lease, and its place in the table of the store.
  static let lease = 320

  /// The piece of memory for a size.
  static func bytes(_ size: Int) -> Int { max(32, rounded(size + 8)) }

  /// The next multiple of 16.
  static func rounded(_ size: Int) -> Int { (size + 15) & ~15 }

  /// A text of so many bytes of UTF-8.
  static func text(of count: Int) -> Int { count > shortTextBytes ? bytes(arrayHeaderBytes + count + 1) : 0 }

  /// An array with room for so many elements.
  static func array(of capacity: Int, stride: Int) -> Int {
    capacity > 0 ? bytes(arrayHeaderBytes + capacity * stride) : 0
  }

  /// The room of an array that so many elements were appended to: it doubles.
  static func grown(_ count: Int) -> Int {
    count > 1 ? 1 << (Int.bitWidth - (count - 1).leadingZeroBitCount) : count
  }

  /// A JSON object with so many members, without the texts of their names and without their values.
  fileprivate static func object(of count: Int) -> Int {
    let box = bytes(headerBytes + MemoryLayout<JSONObject>.size)
    let room = grown(count)
    let table = count >= hashedCount ? bytes(arrayHeaderBytes + 2 * room) : 0
    return box + table + array(of: room, stride: MemoryLayout<String>.stride)
      + array(of: room, stride: MemoryLayout<Value>.stride)
  }
}
