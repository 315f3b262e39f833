/// What a viewer may see of what another reader has (the specification, section 11): objects that may not be read are
/// not there, and references to them stay. Computed keys are worked out from everything.
package struct GuardedReader<Base: ObjectReader>: ObjectReader {
  /// Whether objects may be read, as far as that was asked.
  private final class Memory {
    /// The most answers that are kept; then all are asked anew.
    static var limit: Int { 65_536 }

    var known: [Reference: Bool] = [:]
  }

  private let base: Base
  /// Who reads.
  package let viewer: Viewer
  private let memory = Memory()

  /// What `viewer` may see of `base`, which is not guarded itself and does not change meanwhile.
  package init(_ base: Base, for viewer: Viewer) {
    (self.base, self.viewer) = (base, viewer)
  }

  /// The object of this name; nil also where it may not be read.
  package func record(_ reference: Reference) -> ObjectRecord? {
    guard let record = base.record(reference) else { return nil }
    if let known = memory.known[reference] { return known ? record : nil }
    let isReadable = viewer.mayRead(reference, record, in: base)
    if memory.known.count >= Memory.limit { memory.known.removeAll(keepingCapacity: true) }
    memory.known[reference] = isReadable
    return isReadable ? record : nil
  }

  /// Whether the viewer may not read a key.
  package func hides(_ key: Int, of entity: Entity) -> Bool { viewer.hiddenKeys(of: entity).contains(key) }

  /// What the base reads as part of.
  package var work: ReadingWork? { base.work }

  /// The base, for computed keys.
  package var unguarded: (any ObjectReader)? { base }
}
