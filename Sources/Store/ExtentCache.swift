package import KeyValueModel
import Support

/// The references of each entity's objects in order, kept until an object is made or deleted: sorting them anew for
/// each fetch would cost the extent's length every time. Holds one list for each entity that was fetched.
package final class ExtentCache: Sendable {
  private struct Entry: Sendable {
    let version: UInt64
    let references: [Reference]
  }

  private let entries = Locked<[Int: Entry]>([:])

  /// A cache of nothing.
  package init() {}

  /// The same as `state.references(of: entity)`.
  package func references(of entity: Entity, in state: ModelState) -> [Reference] {
    let version = state.extentVersion(of: entity)
    if let entry = entries.withLock({ $0[entity.index] }), entry.version == version { return entry.references }
    let references = state.references(of: entity)
    entries.withLock { entries in
      // A reader of a later state may have been quicker.
      if entries[entity.index]?.version ?? 0 <= version {
        entries[entity.index] = Entry(version: version, references: references)
      }
    }
    return references
  }
}
