/// The objects of a block, with what their state needs to know of each: it is worked out where the block is read, by
/// many threads, and while the objects are in a cache.
package struct StateBlock: Sendable {
  /// The objects of each entity that the block has some of, entities by their indexes.
  let extents: [(entity: Int, entries: [RecordTree.Entry])]
  /// The to-ones without an inverse.
  let links: [Referrers.Link]
  /// The collections without an inverse, and their members.
  let collections: [(referrer: Referrers.Referrer, members: MemberList)]

  /// The bytes of memory that the objects take.
  let memoryBytes: Int

  /// What the records of a block come to.
  init(_ records: [ObjectRecord]) {
    var extents: [(entity: Int, entries: [RecordTree.Entry])] = []
    var links: [Referrers.Link] = []
    var collections: [(referrer: Referrers.Referrer, members: MemberList)] = []
    links.reserveCapacity(records.count)
    for record in records {
      let entity = record.entity
      if extents.last?.entity != entity.index {
        extents.append((entity.index, []))
        // Most blocks have objects of one entity.
        extents[extents.count - 1].entries.reserveCapacity(records.count)
      }
      extents[extents.count - 1].entries.append(RecordTree.Entry(record))
      for storage in entity.referenceStorage {
        switch record.values[storage] {
        case .reference(let target): links.append(Referrers.Link(to: target, from: record.reference, storage))
        case .members(let list): collections.append((.init(object: record.reference, storage: storage), list))
        default: break
        }
      }
    }
    memoryBytes = records.reduce(0) { $0 + $1.memoryBytes }
    self.extents = extents
    self.links = links
    self.collections = collections
  }

  /// How many objects there are.
  package var count: Int { extents.reduce(0) { $0 + $1.entries.count } }
}
