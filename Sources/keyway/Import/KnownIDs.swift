/// The texts that the ids of an import were made of, by which different texts with one id are found.
///
/// Spaces become `-` in an id, and columns are joined with it: only ids with a `-` more than those between the columns
/// can be made of other texts too. Of those, the last are remembered.
struct KnownIDs: Sendable {
  /// The bytes that an entry takes beside its texts, estimated.
  private static let entryBytes = 96

  private struct Source: Sendable {
    let line: Int
    let text: String
  }

  /// The most bytes that half of what is remembered may take.
  private let capacity: Int
  private var recent: [String: Source] = [:]
  private var older: [String: Source] = [:]
  private var recentBytes = 0

  /// None yet. `bytes` is about what is held at most.
  init(bytes: Int = ImportLimits().heldBytes) { capacity = bytes / 2 }

  /// Takes in the id of a line and the texts of its columns. Throws where an earlier line has the same id, made of
  /// other texts.
  mutating func insert(_ id: String, of parts: [String], line: Int) throws(InvalidCell) {
    guard id.utf8.count(where: { $0 == UInt8(ascii: "-") }) >= parts.count else { return }
    // No id has a comma.
    let text = parts.joined(separator: ", ")
    if let earlier = recent[id] ?? older[id] {
      guard earlier.text != text else { return }
      throw InvalidCell(
        reason: "“\(text)” makes the id \(id), which line \(earlier.line) has made of “\(earlier.text)”")
    }
    // An equal text takes no memory of its own.
    recent[id] = Source(line: line, text: text == id ? id : text)
    recentBytes += Self.entryBytes + id.utf8.count + (text == id ? 0 : text.utf8.count)
    guard recentBytes >= capacity else { return }
    older = recent
    recent = [:]
    recentBytes = 0
  }
}
