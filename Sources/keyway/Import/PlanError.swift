/// Why an import cannot go on: the line that cannot be planned, and what is wrong with it.
struct PlanError: Error, Hashable, Sendable {
  /// The line, from 1.
  var line: Int
  /// What is wrong, as a clause.
  var reason: String
}
