import Dispatch
package import KeyValueModel
import Support

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
