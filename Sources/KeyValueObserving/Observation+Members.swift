import KeyValueModel

extension Observation {
  /// The members at the end of a path that ends at a to-many, without operator, and that tells everything that becomes
  /// of them; nil for any other path, and behind a null. O(length of the path).
  ///
  /// A path with a computed key or one that `notifies: manual` does not tell everything: it may lead elsewhere in
  /// silence, or look away while the members change. Where there is none of these now, and no `setting` has been told
  /// since some moment, the path has led to the same collection ever since then.
  func followedMembers(in reader: some ObjectReader) -> MemberList? {
    // Whether the owner may be read is not known from the members.
    guard viewer == nil || keyPath.keys.count == 1, keyPath.operation == nil, case .list = keyPath.type else {
      return nil
    }
    var owner = object
    var rest = keyPath.keys[...]
    while let key = rest.popFirst() {
      guard let record = reader.record(owner), record.entity.keys[key].storage != nil,
        record.entity.notifying(key) != .manual
      else { return nil }
      switch reader.value(of: record, owner, key: key) {
      case .reference(let next): owner = next
      case .members(let list): return rest.isEmpty ? list : nil
      default: return nil
      }
    }
    return nil
  }
}
