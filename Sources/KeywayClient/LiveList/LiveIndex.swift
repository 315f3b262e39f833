/// A row's place in a live list: its index, or that of its section and its own in it.
package struct LiveIndex: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The section, nil in a list without sections.
  package var section: Int?
  /// The row, counted in its section where there are any.
  package var row: Int

  /// A place in a list without sections, or in a section.
  package init(section: Int? = nil, row: Int) {
    self.section = section
    self.row = row
  }

  /// As the wire has it: `4`, or `[1,4]`.
  package var description: String {
    guard let section else { return String(row) }
    return "[\(section),\(row)]"
  }

  /// The order of rows from the top.
  package static func < (left: LiveIndex, right: LiveIndex) -> Bool {
    (left.section ?? 0, left.row) < (right.section ?? 0, right.row)
  }
}
