import Dispatch
package import KeyValueModel
import Support

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

/// Makes a state of a snapshot's blocks: other threads read them, and when all are read, two threads make the state of
/// what they have read. Holds at most `capacity` blocks besides the objects.
package struct SnapshotDecoder {
  private typealias Outcome = Result<StateBlock, StoredTextError>

  private let schema: Schema
  private var decoder: StateDecoder
  private let outcomes = Locked<[Outcome]>([])
  private let arrivals = DispatchSemaphore(value: 0)
  private var underWay = 0
  /// What was kept with the commits that the snapshot stands for, oldest first.
  package private(set) var kept: [StoredAttachment] = []
  /// How many objects have been read.
  package var count: Int { decoder.count }

  private static let capacity = 32
  private static let queue = DispatchQueue(
    label: "keyway.snapshot", qos: .userInitiated, attributes: .concurrent)

  /// A reader of blocks of a state of this schema.
  package init(schema: Schema) {
    self.schema = schema
    decoder = StateDecoder(schema: schema)
  }

  /// Takes a block. Throws what is wrong with one that came before: what `StateDecoder` finds in it.
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

  /// Waits for one of the blocks under way, and takes its objects.
  private mutating func addNext() throws(StoredTextError) {
    arrivals.wait()
    underWay -= 1
    guard let outcome = outcomes.withLock({ $0.popLast() }) else { return }
    decoder.insert(try outcome.get())
  }

  /// The state of all blocks; throws what is wrong with one.
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

/// A block of a snapshot that has attachments: a mark, and for each the revision and the time of its commit, its length
/// and its bytes. Numbers have eight bytes, the least significant first.
enum KeptBlock {
  /// What it begins with. A block of objects is JSON, and begins with `[`.
  fileprivate static let mark = UInt8(ascii: "a")

  fileprivate static func append(_ attachment: StoredAttachment, to block: inout [UInt8]) {
    let numbers = [attachment.revision, UInt64(bitPattern: attachment.milliseconds), UInt64(attachment.bytes.count)]
    for number in numbers { block.append(littleEndian: number) }
    block.append(contentsOf: attachment.bytes)
  }

  /// The attachments of a block; nil where it is not one, and throws where it is not what was written.
  static func attachments(of block: [UInt8]) throws(StoredTextError) -> [StoredAttachment]? {
    guard block.first == mark else { return nil }
    var attachments: [StoredAttachment] = []
    var rest = block.dropFirst()
    while !rest.isEmpty {
      guard let revision = rest.takeInteger(Revision.self), let milliseconds = rest.takeInteger(Int64.self),
        let count = rest.takeInteger(UInt64.self), let bytes = rest.take(Int(clamping: count))
      else { throw StoredTextError(reason: "what was kept with commits is cut off", offset: rest.startIndex) }
      attachments.append(StoredAttachment(revision: revision, milliseconds: milliseconds, bytes: Array(bytes)))
    }
    return attachments
  }
}
