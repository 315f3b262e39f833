import TestKit

/// One thing that the neighbour does to the others: a row of the table of attacks.
protocol Attack: Sendable {
  /// Its name on the command line and in the report.
  var name: String { get }
  /// What the neighbour does, as a sentence about it.
  var summary: String { get }

  /// One request or connection of it. Called again and again, on several threads at once, until the attack is over.
  func step(_ neighbour: Neighbour, _ random: inout SplitMix64)
}
