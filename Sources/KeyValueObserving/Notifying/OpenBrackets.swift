import KeyValueModel

/// The open brackets, and the search for those around the dependencies of an observation.
struct OpenBrackets {
  private var brackets: [ObservedKey: Bracket] = [:]
  /// The number of brackets that the commit has opened.
  private(set) var opened = 0
  /// For each watched collection whose members read the key of an open bracket, the first of those; nil if this has to
  /// be determined again.
  private var holdersOfWatches: [ObservedKey: ObservedKey]?

  /// True if no bracket is open.
  var isEmpty: Bool { brackets.isEmpty }

  /// The bracket around a key; nil if none is open.
  subscript(key: ObservedKey) -> Bracket? {
    get { brackets[key] }
    _modify { yield &brackets[key] }
  }

  /// Opens a bracket around a key.
  mutating func open(_ key: ObservedKey, _ bracket: Bracket) {
    brackets[key] = bracket
    opened += 1
    holdersOfWatches = nil
  }

  /// Closes the bracket around a key.
  mutating func close(_ key: ObservedKey) {
    brackets[key] = nil
    holdersOfWatches = nil
  }

  /// Invalidates the brackets that were found around dependencies of collections, since paths lead elsewhere.
  mutating func forgetHolders() { holdersOfWatches = nil }

  /// Returns the first opened of the brackets around keys that the computed keys of a dependency read. The outermost
  /// computed key reads everything that the others read.
  mutating func holder(
    of dependency: Dependency, of dependencies: [Dependency], _ collections: CollectionWatches
  ) -> ObservedKey? {
    guard let gate = dependency.gates.first else { return nil }
    var holder: ObservedKey?
    for other in dependencies where other.gates.first == gate {
      let key = other.observedKey
      let found =
        key.isCollection ? self.holder(ofWatch: key, collections) : brackets[key] == nil ? nil : key
      holder = earlier(holder, found)
    }
    return holder
  }

  /// Returns the first opened of the brackets around keys that are read of a collection's members.
  mutating func holder(ofWatch watch: ObservedKey, _ collections: CollectionWatches) -> ObservedKey? {
    if let holdersOfWatches { return holdersOfWatches[watch] }
    let found = collections.firstReaders(of: brackets.sorted { $0.value.number < $1.value.number }.map(\.key))
    holdersOfWatches = found
    return found[watch]
  }

  /// Returns the key whose bracket was opened first.
  func earlier(_ left: ObservedKey?, _ right: ObservedKey?) -> ObservedKey? {
    guard let left, let right else { return left ?? right }
    return brackets[left]?.number ?? 0 < brackets[right]?.number ?? 0 ? left : right
  }
}

/// A bracket that is open.
struct Bracket {
  var depth = 1
  /// The number of brackets of the commit that were opened before it.
  let number: Int
  /// The end of the undo log at the outermost `willChange`.
  let logStart: Int
  /// The observations that depended on the key then.
  let dependents: Set<ObserverIndex.TrackedID>
  /// The positions of the priors among the observers' notifications, for a bracket that turns out to be silent.
  var priors: [Prior] = []
  /// The observations from which the bracket held back changes of other keys; see `HeldWay`.
  var held: Set<ObserverIndex.TrackedID> = []

  struct Prior {
    let id: ObserverIndex.TrackedID
    let observer: ObserverID
    let position: Int
  }
}

/// The value that an observer saw last, if it has not been notified of the changes since.
struct Withheld {
  let value: Value
  /// The ways by which changes would have reached the observer without brackets around other inputs of computed keys.
  var ways: Set<HeldWay> = []
  /// True if any change since was more than a silent setting of a key.
  var isHeard = false
  /// The previous values of the keys that were set silently since.
  var silenced: [ObservedKey: Value] = [:]
}

/// A way from a key that was set to an observation. It leads through a computed key that also reads the key of an
/// open bracket: the observer is notified at that bracket's end, whatever the computed key reads by then.
struct HeldWay: Hashable {
  /// The key of the bracket: of several, the one that was opened first.
  let bracket: ObservedKey
  let gates: [ObservedKey]
}

/// The records as they were before each write while brackets are open. All brackets share one log, so that the cost of
/// a write does not depend on their number. A bracket only stores the end of the log at its `willChange`.
struct UndoLog {
  private struct Entry {
    let position: Int
    let record: ObjectRecord?
  }

  /// The entries by object, each in the order of the writes.
  private var entries: [Reference: [Entry]] = [:]
  /// The number of writes.
  private(set) var count = 0

  /// Records that an object is about to be written; `record` is nil if it does not exist.
  mutating func append(_ object: Reference, _ record: ObjectRecord?) {
    entries[object, default: []].append(Entry(position: count, record: record))
    count += 1
  }

  /// Removes all entries, because no bracket is open any more.
  mutating func removeAll() {
    guard count > 0 else { return }
    entries = [:]
    count = 0
  }

  /// Returns the object as it was when the log had `start` entries, which the first write since then recorded. Nil if
  /// the object was not written since; `.some(nil)` if it did not exist.
  func record(_ object: Reference, at start: Int) -> ObjectRecord?? {
    guard let entries = entries[object], let last = entries.last, last.position >= start else { return nil }
    return .some(entries[entries.sortedCount { $0.position < start }].record)
  }
}

/// The state as it was when a bracket was opened.
struct StateAtWillChange: ObjectReader {
  let log: UndoLog
  let start: Int
  let state: PastState
  /// The work that counts the steps of reading.
  let work: ReadingWork?

  func record(_ reference: Reference) -> ObjectRecord? {
    guard work?.spend() ?? true else { return nil }
    if let former = log.record(reference, at: start) { return former }
    return state.record(reference)
  }
}

/// A state in which silently set keys have their previous values.
struct AudibleState<Base: ObjectReader>: ObjectReader {
  private let base: Base
  private var values: [Reference: [Int: Value]] = [:]

  /// Creates the state of `base` with other values of these keys.
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
