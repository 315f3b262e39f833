package import KeyValueModel

/// Makes the blocks of a snapshot: those of its objects, and behind them what was kept with commits that it stands for.
///
/// Without the latter, what a client is promised for an hour would be gone at the next start once the records of that
/// hour are.
package struct SnapshotEncoder {
  private var objects: StateEncoder
  private let attachments: () -> [StoredAttachment]
  private var kept: ArraySlice<StoredAttachment>?

  /// About how many bytes of what was kept a block has.
  private static let blockBytes = 1 << 16

  /// An encoder of a state, and of the attachments of commits up to its revision, oldest first, which are asked for
  /// once the objects are encoded.
  package init(_ state: ModelState, keeping attachments: @escaping () -> [StoredAttachment]) {
    objects = StateEncoder(state)
    self.attachments = attachments
  }

  /// The next block, nil when all are made.
  package mutating func nextBlock() -> [UInt8]? {
    if let block = objects.nextBlock() { return block }
    var rest = kept ?? attachments()[...]
    defer { kept = rest }
    guard !rest.isEmpty else { return nil }
    var block = [KeptBlock.mark]
    while block.count < Self.blockBytes, let attachment = rest.popFirst() {
      KeptBlock.append(attachment, to: &block)
    }
    return block
  }
}

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
