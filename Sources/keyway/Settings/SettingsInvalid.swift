/// Why a value does not fit its setting, as the predicate of a sentence.
struct InvalidSetting: Error, Hashable, Sendable {
  /// What is wrong: `is 70000, not between 0 and 65535`.
  var reason: String
}
