/// Makes a state of the blocks that `StateEncoder` wrote, which may come in any order.
///
/// `block(of:schema:)` reads a block and needs nothing else, so that many threads can read blocks, and `insert` takes
/// what they have read, one after the other.
package struct StateDecoder: Sendable {
  private let schema: Schema
  private var blocks: [StateBlock] = []
  /// How many objects have been added.
  package private(set) var count = 0

  /// A reader of blocks of a state of this schema.
  package init(schema: Schema) {
    self.schema = schema
  }

  /// The objects of a block. O(n) in its length.
  ///
  /// Throws where the text is not what an encoder writes, and where the entities and keys are not those of the schema
  /// or hold something else. Whether relationships fit together is not looked at.
  package static func block(of bytes: [UInt8], schema: Schema) throws(StoredTextError) -> StateBlock {
    try bytes.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      var reader = StateBlockReader(buffer, schema: schema)
      return StateBlock(try reader.read())
    }
  }

  /// Adds objects that were read from a block.
  package mutating func insert(_ block: StateBlock) {
    blocks.append(block)
    count += block.count
  }

  /// What `finish` takes: half of its work, which another thread can do meanwhile.
  package func referrers() -> Referrers { Referrers(of: blocks) }

  /// The state of all objects that were added; throws where one is there twice. `referrers` gives what the function of
  /// that name makes of them; nil is for the caller's thread to make it.
  package consuming func finish(
    referrers: (() -> Referrers)? = nil
  ) throws(StoredTextError) -> ModelState {
    let blocks = blocks
    return try ModelState(restoring: blocks, schema: schema, referrers: referrers ?? { Referrers(of: blocks) })
  }
}
