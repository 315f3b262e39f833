/// A field that cannot become a value or an id; the caller knows the line.
struct InvalidCell: Error, Hashable, Sendable {
  /// What is wrong, as a clause.
  var reason: String
}
