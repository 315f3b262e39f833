import KeyValueModel

/// A notification, with what it takes to put it in its place and to take it back.
struct CollectedNotification {
  let id: ObserverIndex.TrackedID
  let change: Change
  var isRetracted = false
}

/// A bracket that is open.
struct Bracket {
  var depth = 1
  /// How many brackets of the commit were opened before it.
  let number: Int
  /// Where the undo log ended at the outermost `willChange`.
  let logStart: Int
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

/// Why an observation hears of an operation: the place of the first key, and how far it is from the observation.
struct Trigger {
  var keyPosition: Int
  var depth: Int
  /// What became of the members, where the observation ends at a collection that was changed and not set.
  var collection: Commit.CollectionChange?
}
