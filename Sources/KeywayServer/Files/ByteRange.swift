/// What a `Range` header asks for of a file (RFC 9110 §14).
enum ByteRange: Equatable, Sendable {
  /// All of it: there is no such header, it is none of one range of bytes, or not of this version of the file.
  case all
  /// These bytes.
  case part(Range<Int>)
  /// Bytes that the file does not have.
  case unsatisfiable

  /// Reads a header for a file of `count` bytes. What is not understood counts as none, and so do several ranges, as
  /// RFC 9110 §14.2 allows.
  init(_ header: String?, count: Int) {
    self = .all
    guard let header, let equals = header.firstIndex(of: "="),
      header[..<equals].trimmingSpaces().lowercased() == "bytes"
    else { return }
    let specifier = header[header.index(after: equals)...].trimmingSpaces()
    guard let dash = specifier.firstIndex(of: "-") else { return }
    let (first, last) = (specifier[..<dash], specifier[specifier.index(after: dash)...])
    if first.isEmpty {
      guard let length = Self.number(last) else { return }
      self = length == 0 || count == 0 ? .unsatisfiable : .part(max(0, count - length)..<count)
      return
    }
    guard let start = Self.number(first) else { return }
    guard let end = last.isEmpty ? .max : Self.number(last), start <= end else { return }
    self = start < count ? .part(start..<min(end, count - 1) + 1) : .unsatisfiable
  }

  /// Digits alone, the greatest `Int` where they are more; nil for anything else.
  private static func number(_ text: some StringProtocol) -> Int? {
    text.isDecimal ? Int(text) ?? .max : nil
  }
}
