import KeyValueModel

@testable import KeyValueObserving

/// What became of a row as a line: `move E/1 2>0 salary`, `insert E/2 >[0,1] entered`.
func line(_ change: QueryChange) -> String {
  let places = "\(change.index.map(text) ?? "")" + (change.newIndex.map { ">\(text($0))" } ?? "")
  let keys = change.keys.compactMap { key in change.row.map { key.name(in: $0.entity) } }
  return ([change.kind.rawValue, change.object.text, places, change.reason?.rawValue].compactMap { $0 } + keys)
    .joined(separator: " ")
}

/// What a content says, one line a thing; sections as `section +"a" 0` and `section -"a" 0`.
func lines(_ content: QueryContent) -> [String] {
  content.changes.map(line)
    + content.sectionChanges.map { change in
      switch change {
      case .insert(let name, let index): "section +\(name.json) \(index)"
      case .delete(let name, let index): "section -\(name.json) \(index)"
      }
    }
}

private func text(_ position: RowPosition) -> String {
  switch position {
  case .row(let row): "\(row)"
  case .sectioned(let section, let row): "[\(section),\(row)]"
  }
}
