extension Commit {
  private static let bytesPerMember = 48

  /// About how many bytes of memory the commit keeps alive, for bounds on histories.
  package var approximateBytes: Int {
    if let setting = plainSetting {
      return 160 + 96 + 2 * 64 + setting.before.approximateBytes + setting.after.approximateBytes
    }
    var bytes = 160
    var deleted: Set<Reference> = []
    for step in steps {
      bytes += 96
      if case .change(let changes) = step.kind {
        for change in changes { bytes += Self.approximateBytes(ofMembersIn: change) }
      }
      for write in step.writes {
        bytes += 64 + (write.record?.approximateBytes ?? 0)
        if write.record == nil { deleted.insert(write.object) }
      }
    }
    for entry in before {
      bytes += 64 + (entry.record?.approximateBytes ?? 0)
      // Nothing else keeps what a deleted object had.
      if deleted.contains(entry.object) { bytes += Self.bytesPerMember * (entry.record?.memberCount ?? 0) }
    }
    return bytes
  }

  /// What a change keeps of a collection besides the record: the members that came or went; where it was set as a
  /// whole, all that it has, since the list before shares nothing with it.
  private static func approximateBytes(ofMembersIn change: KeyChange) -> Int {
    guard let collection = change.collection else { return bytesPerMember * change.memberCount }
    return 96 + bytesPerMember * (collection.removed.count + collection.inserted.count)
  }
}

extension ObjectRecord {
  /// How many members its collections have.
  fileprivate var memberCount: Int {
    values.reduce(0) { if case .members(let list) = $1 { $0 + list.count } else { $0 } }
  }
}

extension ObjectRecord {
  /// O(1) for an entity without collections, whose members are shared with the list before and after; O(n) otherwise.
  fileprivate var approximateBytes: Int {
    guard entity.hasCollections else { return memoryBytes }
    let values = values
    return values.indices.reduce(64) { $0 + values.approximateBytes(at: $1) }
  }
}
