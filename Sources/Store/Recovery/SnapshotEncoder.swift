import Dispatch
package import KeyValueModel
import Support

/// Encodes a snapshot into blocks: first its objects, then the attachments of the commits that it includes.
///
/// Without the attachments, what a client is promised for an hour would be lost at the next start once the records of
/// that hour are removed.
package struct SnapshotEncoder {
  private var objects: StateEncoder
  private let attachments: () -> [StoredAttachment]
  private var kept: ArraySlice<StoredAttachment>?

  /// The approximate size of a block of attachments, in bytes.
  private static let blockBytes = 1 << 16

  /// Creates an encoder of a state and of the attachments of commits up to its revision, oldest first. `attachments` is
  /// called once the objects are encoded.
  package init(_ state: ModelState, keeping attachments: @escaping () -> [StoredAttachment]) {
    objects = StateEncoder(state)
    self.attachments = attachments
  }

  /// Returns the next block; nil at the end.
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

/// Decodes a state from a snapshot's blocks: other threads read the blocks, and when all are read, two threads build
/// the state from them. Holds at most `capacity` blocks besides the objects.
package struct SnapshotDecoder {
  private typealias Outcome = Result<StateBlock, StoredTextError>

  private let schema: Schema
  private var decoder: StateDecoder
  private let outcomes = Locked<[Outcome]>([])
  private let arrivals = DispatchSemaphore(value: 0)
  private var underWay = 0
  /// The attachments of the commits that the snapshot includes, oldest first.
  package private(set) var kept: [StoredAttachment] = []
  /// The number of objects read.
  package var count: Int { decoder.count }

  private static let capacity = 32
  private static let queue = DispatchQueue(
    label: "keyway.snapshot", qos: .userInitiated, attributes: .concurrent)

  /// Creates a decoder for a state of a schema.
  package init(schema: Schema) {
    self.schema = schema
    decoder = StateDecoder(schema: schema)
  }

  /// Decodes a block. Throws the error that `StateDecoder` found in an earlier block.
  package mutating func decode(_ block: [UInt8]) throws(StoredTextError) {
    if let attachments = try KeptBlock.attachments(of: block) { return kept += attachments }
    if underWay == Self.capacity { try addNext() }
    underWay += 1
    Self.queue.async { [schema, outcomes, arrivals] in
      let outcome = Outcome { () throws(StoredTextError) in try StateDecoder.block(of: block, schema: schema) }
      outcomes.withLock { $0.append(outcome) }
      arrivals.signal()
    }
  }

  /// Waits for one of the pending blocks and inserts its objects.
  private mutating func addNext() throws(StoredTextError) {
    arrivals.wait()
    underWay -= 1
    guard let outcome = outcomes.withLock({ $0.popLast() }) else { return }
    decoder.insert(try outcome.get())
  }

  /// Returns the state of all blocks. Throws the error found in a block.
  package consuming func finish() throws(StoredTextError) -> ModelState {
    while underWay > 0 { try addNext() }
    let (decoder, group, referrers) = (decoder, DispatchGroup(), Locked<Referrers?>(nil))
    Self.queue.async(group: group) {
      let found = decoder.referrers()
      referrers.withLock { $0 = found }
    }
    return try decoder.finish {
      group.wait()
      return referrers.withLock { $0 } ?? decoder.referrers()
    }
  }
}

/// A block of a snapshot that holds attachments: a mark, and for each attachment the revision and the time of its
/// commit, its length and its bytes. Numbers are 8 bytes, little-endian.
enum KeptBlock {
  /// The first byte of the block. A block of objects is JSON and begins with `[`.
  fileprivate static let mark = UInt8(ascii: "a")

  fileprivate static func append(_ attachment: StoredAttachment, to block: inout [UInt8]) {
    let numbers = [attachment.revision, UInt64(bitPattern: attachment.milliseconds), UInt64(attachment.bytes.count)]
    for number in numbers { block.append(littleEndian: number) }
    block.append(contentsOf: attachment.bytes)
  }

  /// Returns the attachments of a block; nil if the block holds no attachments. Throws if it is not as it was written.
  static func attachments(of block: [UInt8]) throws(StoredTextError) -> [StoredAttachment]? {
    guard block.first == mark else { return nil }
    var attachments: [StoredAttachment] = []
    var rest = block.dropFirst()
    while !rest.isEmpty {
      guard let revision = rest.takeInteger(Revision.self), let milliseconds = rest.takeInteger(Int64.self),
        let count = rest.takeInteger(UInt64.self), let bytes = rest.take(Int(clamping: count))
      else { throw StoredTextError(reason: "the attachments of commits are cut off", offset: rest.startIndex) }
      attachments.append(StoredAttachment(revision: revision, milliseconds: milliseconds, bytes: Array(bytes)))
    }
    return attachments
  }
}
