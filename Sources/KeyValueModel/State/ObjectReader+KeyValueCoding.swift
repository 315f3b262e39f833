/// Key-value coding (KVC guide, "Accessing Object Properties"): reading through relationships and computed keys.
extension ObjectReader {
  /// The value at the end of a path of key indexes. A null or a deleted object on the way makes it null.
  public func value(of reference: Reference, at path: some Collection<Int>) -> Value {
    var current = reference
    var value = Value.null
    var isFirst = true
    for key in path {
      if !isFirst {
        guard case .reference(let next) = value else { return .null }
        current = next
      }
      isFirst = false
      guard let record = record(current) else { return .null }
      value = self.value(of: record, current, key: key)
    }
    return value
  }

  /// The value of one key of an object.
  public func value(of record: ObjectRecord, _ reference: Reference, key: Int) -> Value {
    let key = record.entity.keys[key]
    if let storage = key.storage { return record.values[storage] }
    guard case .computed(let computed) = key.kind else { return .null }
    return value(of: reference, at: computed.path)
  }

  /// The last revision that changed an object along `path`, the first one included: the `ETag` of a key path.
  public func revision(of reference: Reference, along path: some Collection<Int>) -> Revision {
    var current: Reference? = reference
    var latest: Revision = 0
    for key in path {
      guard let reference = current, let record = record(reference) else { break }
      latest = max(latest, record.revision)
      if case .computed(let computed) = record.entity.keys[key].kind {
        latest = max(latest, revision(of: reference, along: computed.path))
      }
      guard case .reference(let next) = value(of: record, reference, key: key) else { break }
      current = next
    }
    return latest
  }

  /// The last revision that changed an object or what its computed keys read: the `ETag` of an object.
  public func revision(of reference: Reference) -> Revision {
    guard let record = record(reference) else { return 0 }
    guard record.entity.hasComputedKeys else { return record.revision }
    var latest = record.revision
    for case .computed(let computed) in record.entity.keys.lazy.map(\.kind) {
      latest = max(latest, revision(of: reference, along: computed.path))
    }
    return latest
  }
}
