/// Key-value coding (KVC guide, "Accessing Object Properties"): reading through relationships and computed keys.
extension ObjectReader {
  /// The value at the end of a path of key indexes. A null or a deleted object on the way makes it null.
  public func value(of reference: Reference, at path: some Collection<Int>) -> Value {
    var latest: Revision = 0
    return value(of: reference, at: path, latest: &latest)
  }

  /// The value of one key of an object.
  public func value(of record: ObjectRecord, _ reference: Reference, key: Int) -> Value {
    var latest: Revision = 0
    return value(of: record, reference, key: key, latest: &latest)
  }

  /// The last revision that changed an object along `path`, the first one included: the `ETag` of a key path.
  public func revision(of reference: Reference, along path: some Collection<Int>) -> Revision {
    var latest: Revision = 0
    _ = value(of: reference, at: path, latest: &latest)
    return latest
  }

  /// The last revision that changed an object or what its computed keys read: the `ETag` of an object.
  public func revision(of reference: Reference) -> Revision {
    guard let record = record(reference) else { return 0 }
    var latest = record.revision
    guard record.entity.hasComputedKeys else { return latest }
    for column in record.entity.layout.columns where column.storage < 0 {
      _ = value(of: reference, at: record.entity.layout.path(of: column), latest: &latest)
    }
    return latest
  }

  /// The value at the end of a path; `latest` grows to the last revision of any object that was read.
  private func value(of reference: Reference, at path: some Collection<Int>, latest: inout Revision) -> Value {
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
      latest = max(latest, record.revision)
      value = self.value(of: record, current, key: key, latest: &latest)
    }
    return value
  }

  private func value(of record: ObjectRecord, _ reference: Reference, key: Int, latest: inout Revision) -> Value {
    let column = record.entity.layout.columns[key]
    if column.storage >= 0 { return record.values[Int(column.storage)] }
    return value(of: reference, at: record.entity.layout.path(of: column), latest: &latest)
  }

  /// Appends an object as the wire contract has it, section 3: `@ref`, `@revision`, and all keys in the schema's order.
  /// Gives the last revision that changed anything of it, which is its `ETag`.
  @discardableResult
  public func appendJSON(of reference: Reference, _ record: ObjectRecord, to bytes: inout [UInt8]) -> Revision {
    var latest = record.revision
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: reference.text.utf8)
    bytes.append(contentsOf: "\",\"@revision\":".utf8)
    bytes.appendDecimal(record.revision)
    let layout = record.entity.layout
    for column in layout.columns {
      bytes.append(contentsOf: layout.names[Int(column.nameStart)..<Int(column.nameEnd)])
      if column.storage >= 0 {
        record.values[Int(column.storage)].appendJSON(to: &bytes)
      } else {
        value(of: reference, at: layout.path(of: column), latest: &latest).appendJSON(to: &bytes)
      }
    }
    bytes.append(UInt8(ascii: "}"))
    return latest
  }
}
