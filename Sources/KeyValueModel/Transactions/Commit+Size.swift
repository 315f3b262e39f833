internal import OrderedCollections

extension Commit {
  /// About how many bytes of memory the commit keeps alive, for bounds on histories.
  package var approximateBytes: Int {
    var bytes = 160
    for entry in before { bytes += 64 + (entry.record?.approximateBytes ?? 0) }
    for step in steps {
      bytes += 96
      for write in step.writes { bytes += 64 + (write.after?.approximateBytes ?? 0) }
    }
    return bytes
  }
}

extension ObjectRecord {
  fileprivate var approximateBytes: Int { values.reduce(64) { $0 + $1.approximateBytes } }
}

extension Value {
  fileprivate var approximateBytes: Int {
    switch self {
    case .string(let text): 32 + text.utf8.count
    case .array(let elements): elements.reduce(48) { $0 + $1.approximateBytes }
    case .object(let object): object.members.reduce(64) { $0 + 32 + $1.key.utf8.count + $1.value.approximateBytes }
    default: 32
    }
  }
}
