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
