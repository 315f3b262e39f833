import KeyValueModel

extension PastState {
  /// True if setting the key can make a path lead elsewhere.
  func isLink(_ key: ObservedKey) -> Bool {
    guard let entity = record(key.object)?.entity else { return true }
    if entity.isAttribute(key.key) { return false }
    switch entity.keys[key.key].kind {
    case .attribute, .toMany: return false
    case .toOne, .computed: return true
    }
  }

  /// When a key notifies its observers. An object that is not there, because it is about to be made again, keeps silent
  /// like any of its kind.
  func notifying(_ key: ObservedKey) -> Key.Notifying {
    let entity = record(key.object)?.entity ?? schema.entity(of: key.object)
    return entity?.notifying(key.key) ?? .always
  }
}
