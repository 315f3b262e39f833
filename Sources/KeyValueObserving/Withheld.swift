import KeyValueModel

/// What an observer saw last, where it has not been notified of what happened since.
struct Withheld {
  let value: Value
  /// The ways by which changes would have reached it, but for brackets around other inputs of computed keys.
  var ways: Set<HeldWay> = []
}

/// A way from a key that was set to an observation. It leads through a computed key that also reads the key of an
/// open bracket: the observer is notified at that bracket's end, whatever the computed key reads by then.
struct HeldWay: Hashable {
  /// The key of the bracket: of several, the one that was opened first.
  let bracket: ObservedKey
  let gates: [ObservedKey]
}
