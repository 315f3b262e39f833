import Dispatch
package import KeyValueModel
import Locking

/// Makes a state of a snapshot's blocks: other threads read them, and the caller's adds what they have read, which
/// takes about as long. Holds at most `capacity` blocks and their objects besides the state.
package struct SnapshotDecoder {
  private typealias Outcome = Result<[StateDecoder.Restored], StoredTextError>

  private let schema: Schema
  private var decoder: StateDecoder
  private let outcomes = Locked<[Outcome]>([])
  private let arrivals = DispatchSemaphore(value: 0)
  private var underWay = 0
  /// How many objects have been added.
  package private(set) var count = 0

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
    if underWay == Self.capacity { try addNext() }
    underWay += 1
    Self.queue.async { [schema, outcomes, arrivals] in
      let outcome = Outcome { () throws(StoredTextError) in try StateDecoder.records(of: block, schema: schema) }
      outcomes.withLock { $0.append(outcome) }
      arrivals.signal()
    }
  }

  /// Waits for one of the blocks under way, and adds its objects.
  private mutating func addNext() throws(StoredTextError) {
    arrivals.wait()
    underWay -= 1
    guard let outcome = outcomes.withLock({ $0.popLast() }) else { return }
    let objects = try outcome.get()
    try decoder.insert(objects)
    count += objects.count
  }

  /// The state of all blocks; throws what is wrong with one.
  package consuming func finish() throws(StoredTextError) -> ModelState {
    while underWay > 0 { try addNext() }
    return decoder.finish()
  }
}
