import KeyValueModel

/// Keys that are set silently while a bracket is open: that is no reason to notify, but what an observer is told at the
/// bracket's end begins before it.
extension CommitNotifier {
  /// Remembers what observers saw last of values that depend on the key of an open bracket, and what this key held,
  /// which is about to be set and keeps silent. Must come before the change is applied.
  mutating func noteSilence(_ reached: [Reached], of key: ObservedKey) {
    guard let record = state.record(key.object), let storage = record.entity.keys[key.key].storage else { return }
    for entry in reached {
      if withheld[entry.id] == nil {
        guard dependsOnBracket(entry.id) else { continue }
        withheld[entry.id] = observedValue(of: entry.id).map { Withheld(value: $0) }
      }
      if withheld[entry.id]?.silenced[key] == nil { withheld[entry.id]?.silenced[key] = record.values[storage] }
    }
  }

  /// Whether the key of an open bracket is among what an observation depends on.
  private mutating func dependsOnBracket(_ id: ObserverIndex.TrackedID) -> Bool {
    for dependency in index.tracked[id]?.dependencies ?? [] {
      let key = dependency.observedKey
      if brackets[key] != nil || (key.isCollection && brackets.holder(ofWatch: key, index.collections) != nil) {
        return true
      }
    }
    return false
  }

  /// Whether an observer saw last another value than there is, because a bracket withheld it: then no key that notifies
  /// only when changed may keep it silent. What was set silently does not count.
  mutating func owes(_ id: ObserverIndex.TrackedID) -> Bool {
    guard let withheld = withheld[id], withheld.isHeard, let present = observedValue(of: id),
      withheld.value != present
    else { return false }
    guard !withheld.silenced.isEmpty else { return true }
    return audibleValue(of: id, silenced: withheld.silenced).map { withheld.value != $0 } ?? false
  }
}

/// A state in which keys hold what they held before they were set silently.
struct AudibleState<Base: ObjectReader>: ObjectReader {
  private let base: Base
  private var values: [Reference: [Int: Value]] = [:]

  /// The state that `base` has, but for these keys.
  init(base: Base, silenced: [ObservedKey: Value]) {
    self.base = base
    for (key, value) in silenced { values[key.object, default: [:]][key.key] = value }
  }

  var work: ReadingWork? { base.work }

  func record(_ reference: Reference) -> ObjectRecord? {
    guard let record = base.record(reference), let kept = values[reference] else { return base.record(reference) }
    var all = Array(record.values)
    for (key, value) in kept {
      if let storage = record.entity.keys[key].storage { all[storage] = value }
    }
    return ObjectRecord(
      reference, entity: record.entity, revision: record.revision, createdAt: record.createdAt, values: all,
      farRevision: record.farRevision)
  }
}
