import KeywayClient

/// What the last event did to a row, as the table shows it.
enum RowMark: Hashable, Sendable {
  case inserted, movedUp, movedDown, updated

  /// The mark of a change; a deletion leaves no row to mark.
  init?(_ change: LiveChange) {
    switch change.kind {
    case .insert: self = .inserted
    case .update: self = .updated
    case .delete: return nil
    case .move:
      guard let old = change.index, let new = change.newIndex else { return nil }
      self = new < old ? .movedUp : .movedDown
    }
  }

  var sign: String {
    switch self {
    case .inserted: "+"
    case .movedUp: "↑"
    case .movedDown: "↓"
    case .updated: "•"
    }
  }

  var style: TextStyle {
    switch self {
    case .inserted: .green
    case .movedUp, .movedDown: .yellow
    case .updated: .bold
    }
  }

  var signStyle: TextStyle {
    switch self {
    case .movedUp, .movedDown: [.yellow, .inverse]
    default: style
    }
  }
}
