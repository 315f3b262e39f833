import KeyValueModel

/// A bracket that is open.
struct Bracket {
  var depth = 1
  /// How many brackets of the commit were opened before it.
  let number: Int
  /// Where the undo log ended at the outermost `willChange`.
  let logStart: Int
  /// The observations that depended on the key then.
  let dependents: Set<ObserverIndex.TrackedID>
  /// Where the priors stand among the observer's notifications, for a bracket that turns out to be silent.
  var priors: [Prior] = []
  /// The observations of which it held something back that other keys did; see `HeldWay`.
  var held: Set<ObserverIndex.TrackedID> = []

  struct Prior {
    let id: ObserverIndex.TrackedID
    let observer: ObserverID
    let position: Int
  }
}

/// What an observer saw last, where it has not been notified of what happened since.
struct Withheld {
  let value: Value
  /// The ways by which changes would have reached it, but for brackets around other inputs of computed keys.
  var ways: Set<HeldWay> = []
  /// Whether any of what happened since was more than a key being set silently.
  var isHeard = false
  /// What the keys held that were set silently since, before they were.
  var silenced: [ObservedKey: Value] = [:]
}

/// A way from a key that was set to an observation. It leads through a computed key that also reads the key of an
/// open bracket: the observer is notified at that bracket's end, whatever the computed key reads by then.
struct HeldWay: Hashable {
  /// The key of the bracket: of several, the one that was opened first.
  let bracket: ObservedKey
  let gates: [ObservedKey]
}
