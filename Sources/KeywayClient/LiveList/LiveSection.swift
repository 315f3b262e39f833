package import KeyValueModel

/// A section of a live list, as it is now: a collection of its rows. A list without sections is one without a name.
package struct LiveSection: Hashable, Sendable, RandomAccessCollection {
  /// The value that its rows share; nil in a list without sections.
  package let name: Value?
  /// Its own place among the sections; nil in a list without sections.
  package let index: Int?
  let items: [LiveList.Item]

  /// The place of the first row.
  package var startIndex: Int { 0 }
  /// The place behind the last row.
  package var endIndex: Int { items.count }

  /// The row at a place.
  package subscript(row: Int) -> LiveRow {
    LiveRow(reference: items[row].reference, value: items[row].value, index: LiveIndex(section: index, row: row))
  }
}
