/// The ids that rows get.
enum ImportID {
  /// The id of a row: the texts of its id columns joined by `-`, spaces too as `-`.
  static func id(of parts: [String]) throws(InvalidCell) -> String {
    let id = parts.joined(separator: "-").replacing(" ", with: "-")
    if let wrong = id.unicodeScalars.first(where: { !isAllowed($0) }) {
      throw InvalidCell(
        reason: "the id \(id) contains \(name(wrong)); an id has letters, digits and . _ ~ - of ASCII only")
    }
    guard !parts.contains(""), !id.isEmpty else { throw InvalidCell(reason: "an id column is empty") }
    guard id.utf8.count <= 128 else { throw InvalidCell(reason: "the id \(id) is longer than 128 characters") }
    guard id != ".", id != ".." else { throw InvalidCell(reason: "\(id) cannot be an id") }
    return id
  }

  private static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "A"..."Z", "a"..."z", "0"..."9", ".", "_", "~", "-": true
    default: false
    }
  }

  private static func name(_ scalar: Unicode.Scalar) -> String {
    scalar.value < 0x20 || scalar.value == 0x7F ? "U+00" + String(scalar.value, radix: 16) : "“\(scalar)”"
  }
}
