/// Objects with a record of each, in the order in which they were first noted. Few objects, which is what most
/// transactions write, are searched one by one: that costs no hash and no more memory than their array.
struct RecordLog: Sendable {
  /// The objects, each once; nil for those that are not there.
  private(set) var entries: [(object: Reference, record: ObjectRecord?)] = []
  /// Where each object stands among the entries, once these are more than `searchLimit`.
  private var positions: [Reference: Int] = [:]

  private static let searchLimit = 8

  /// Notes an object. One that is noted already keeps its record unless it is to be replaced.
  mutating func note(_ object: Reference, _ record: ObjectRecord?, replacing: Bool) {
    if let position = position(of: object) {
      if replacing { entries[position].record = record }
      return
    }
    entries.append((object, record))
    if entries.count > Self.searchLimit { index() }
  }

  /// The record that was noted; nil where the object is not among the entries, `.some(nil)` where it was not there.
  subscript(object: Reference) -> ObjectRecord?? {
    position(of: object).map { entries[$0].record }
  }

  private func position(of object: Reference) -> Int? {
    if entries.count > Self.searchLimit { return positions[object] }
    return entries.firstIndex { $0.object == object }
  }

  /// Takes the last entry into the positions, or all where there are none yet.
  private mutating func index() {
    for position in positions.count..<entries.count { positions[entries[position].object] = position }
  }
}
