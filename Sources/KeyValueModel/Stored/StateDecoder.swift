/// Makes a state of the blocks that `StateEncoder` wrote, which may come in any order.
///
/// `records(of:schema:)` reads a block and needs nothing else, so that many threads can read blocks, and `insert` takes
/// what they have read, one after the other.
package struct StateDecoder: Sendable {
  /// An object of a block.
  package typealias Restored = (reference: Reference, record: ObjectRecord)

  private var state: ModelState

  /// A reader of blocks of a state of this schema.
  package init(schema: Schema) {
    state = ModelState(schema: schema)
  }

  /// The objects of a block. O(n) in its length.
  ///
  /// Throws where the text is not what an encoder writes, and where the entities and keys are not those of the schema
  /// or hold something else. Whether relationships fit together is not looked at.
  package static func records(of block: [UInt8], schema: Schema) throws(StoredTextError) -> [Restored] {
    try block.withUnsafeBufferPointer { buffer throws(StoredTextError) in
      var reader = StateBlockReader(buffer, schema: schema)
      return try reader.read()
    }
  }

  /// Adds objects that were read from a block; throws for one that is there already, and then has added those before
  /// it.
  package mutating func insert(_ objects: [Restored]) throws(StoredTextError) {
    for (reference, record) in objects {
      guard state.replace(reference, with: record) == nil else {
        throw StoredTextError(reason: "\(reference) is there twice", offset: 0)
      }
    }
  }

  /// The state of all objects that were added.
  package consuming func finish() -> ModelState { state }
}
