import KeyValueModel

/// An observation that a key reaches, by one of the ways.
struct Reached {
  let id: ObserverIndex.TrackedID
  /// The computed keys on the way, outermost first.
  let gates: [ObservedKey]
  /// Whether the way leads through no collection.
  let isDirect: Bool
  /// The key of an open bracket, the first opened of several, that one of the computed keys reads as well; nil where
  /// there is none, or where none was looked for.
  let holder: ObservedKey?
  /// Whether the key only says whether an object may be read.
  let isOfRule: Bool
}

/// The part of a way between a key and what depends on it.
struct Stretch {
  var gates: [ObservedKey] = []
  var isDirect = true
  var holder: ObservedKey?
  var isOfRule = false
  let isFindingHolders: Bool
}

extension ObserverIndex {
  /// True if the path of an observation that was reached ends at a collection key.
  func isEnd(_ key: ObservedKey, of entry: Reached) -> Bool {
    guard entry.isDirect, entry.gates.isEmpty, let path = tracked[entry.id]?.observation.keyPath else { return false }
    return path.operation == nil && path.keys.last == key.key
  }
}
