/// Where a row stands in the list that a client has.
package enum RowPosition: Hashable, Sendable {
  /// In a list without sections.
  case row(Int)
  /// In a section, and in that.
  case sectioned(section: Int, row: Int)
}
