import KeyValueModel

/// A block of a snapshot that has attachments: a mark, and for each the revision and the time of its commit, its length
/// and its bytes. Numbers have eight bytes, the least significant first.
enum KeptBlock {
  /// What it begins with. A block of objects is JSON, and begins with `[`.
  static let mark = UInt8(ascii: "a")

  static func append(_ attachment: StoredAttachment, to block: inout [UInt8]) {
    let numbers = [attachment.revision, UInt64(bitPattern: attachment.milliseconds), UInt64(attachment.bytes.count)]
    for number in numbers { withUnsafeBytes(of: number.littleEndian) { block.append(contentsOf: $0) } }
    block.append(contentsOf: attachment.bytes)
  }

  /// The attachments of a block; nil where it is not one, and throws where it is not what was written.
  static func attachments(of block: [UInt8]) throws(StoredTextError) -> [StoredAttachment]? {
    guard block.first == mark else { return nil }
    var attachments: [StoredAttachment] = []
    var rest = block.dropFirst()
    while !rest.isEmpty {
      guard let revision = number(&rest), let milliseconds = number(&rest), let count = number(&rest),
        count <= UInt64(rest.count)
      else { throw StoredTextError(reason: "what was kept with commits is cut off", offset: rest.startIndex) }
      attachments.append(
        StoredAttachment(
          revision: revision, milliseconds: Int64(bitPattern: milliseconds), bytes: Array(rest.prefix(Int(count)))))
      rest = rest.dropFirst(Int(count))
    }
    return attachments
  }

  private static func number(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
    guard rest.count >= 8 else { return nil }
    defer { rest = rest.dropFirst(8) }
    return rest.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(as: UInt64.self)) }
  }
}
