internal import ArgumentParser

/// What an import does with an object that is there already.
enum ConflictRule: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
  /// It stops.
  case fail
  /// It replaces all that the object holds.
  case replace
  /// It leaves the object as it is.
  case skip
}
