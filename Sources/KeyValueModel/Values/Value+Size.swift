extension Value {
  /// About how many bytes its JSON text has: escapes are not counted, and a double counts 8. O(n), without a copy.
  package var textBytes: Int {
    switch self {
    case .null, .bool: 4
    case .integer(let integer): Self.digits(of: integer.magnitude) + (integer < 0 ? 1 : 0)
    case .number, .rounded: 8
    case .string(let text): text.utf8.count + 2
    case .reference(let reference): reference.text.utf8.count + 2
    case .array(let elements): elements.reduce(2) { $0 + $1.memberBytes }
    case .members(let list): list.reduce(2) { $0 + $1.memberBytes }
    case .object(let object): object.members.reduce(2) { $0 + $1.key.utf8.count + 3 + $1.value.memberBytes }
    }
  }

  /// The same as a member of an array, with its comma.
  var memberBytes: Int { textBytes + 1 }

  /// How many decimal digits a number has, or one more: 1233/4096 is about log₁₀ 2.
  private static func digits(of magnitude: UInt64) -> Int {
    ((64 - magnitude.leadingZeroBitCount) * 1233) >> 12 + 1
  }
}
