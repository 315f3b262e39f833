/// Makes a state of the blocks that `StateEncoder` wrote, which may come in any order.
///
/// `records(of:schema:)` reads a block and needs nothing else, so that many threads can read blocks, and `insert` takes
/// what they have read, one after the other.
package struct StateDecoder: Sendable {
  private let schema: Schema
  private var records: [ObjectRecord] = []

  /// A reader of blocks of a state of this schema.
  package init(schema: Schema) {
    self.schema = schema
  }

  /// How many objects have been added.
  package var count: Int { records.count }

  /// The objects of a block. O(n) in its length.
  ///
  /// Throws where the text is not what an encoder writes, and where the entities and keys are not those of the schema
  /// or hold something else. Whether relationships fit together is not looked at.
  package static func records(of block: [UInt8], schema: Schema) throws(StoredTextError) -> [ObjectRecord] {
    try block.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      var reader = StateBlockReader(buffer, schema: schema)
      return try reader.read()
    }
  }

  /// Adds objects that were read from a block.
  package mutating func insert(_ objects: [ObjectRecord]) { records += objects }

  /// What `finish` takes: half of its work, which another thread can do meanwhile.
  package func referrers() -> Referrers { Referrers(of: records) }

  /// The state of all objects that were added; throws where one is there twice. `referrers` gives what the function of
  /// that name makes of them; nil is for the caller's thread to make it.
  package consuming func finish(
    referrers: (() -> Referrers)? = nil
  ) throws(StoredTextError) -> ModelState {
    let records = records
    return try ModelState(restoring: records, schema: schema, referrers: referrers ?? { Referrers(of: records) })
  }
}
