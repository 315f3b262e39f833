import KeyValueModel
import KeywayClient

/// The visible columns of a table, and their widths.
///
/// A column is as wide as its widest text while there is room. If there is not, the widest columns shrink first, down
/// to `minimumWidth`, and then the last columns are hidden.
struct ColumnLayout: Sendable {
  private struct Column: Sendable {
    var name: String
    var width: Int
    /// True if the column has only numbers, which are aligned to the right.
    var isNumeric: Bool
  }

  /// The width down to which columns shrink before others are hidden.
  private static let minimumWidth = 8
  private static let gap = "  "

  private var shown: [Column] = []
  /// The number of hidden columns.
  private(set) var hiddenCount = 0

  /// Creates the layout of the columns with these names, for these rows, on a terminal with `columns` columns.
  init(_ names: [String], rows: [LiveRow], columns: Int) {
    shown = names.map { name in
      let values = rows.compactMap { Self.value(of: name, in: $0) }
      let widest = values.reduce(TerminalText.width(TerminalText.clean(name))) { widest, value in
        max(widest, TerminalText.width(TerminalText.clean(value.plainText)))
      }
      let isNumeric = values.contains(where: \.isNumber) && values.allSatisfy(\.isNumberOrNull)
      return Column(name: name, width: widest, isNumeric: isNumeric)
    }
    while shown.count > 1 {
      let needed = shown.reduce(0) { $0 + min($1.width, Self.minimumWidth) }
      guard needed > Self.room(columns, shown.count) else { break }
      shown.removeLast()
      hiddenCount += 1
    }
    shrink(to: max(0, Self.room(columns, shown.count)))
  }

  var heading: String {
    line { TerminalText.clean($0.name) }
  }

  func text(of row: LiveRow) -> String {
    line { column in TerminalText.clean(Self.value(of: column.name, in: row)?.plainText ?? "") }
  }

  private static func value(of name: String, in row: LiveRow) -> Value? {
    name == "@ref" ? .reference(row.reference) : row.value[name]
  }

  private func line(_ text: (Column) -> String) -> String {
    shown.map { TerminalText.fitted(text($0), columns: $0.width, isRightAligned: $0.isNumeric) }
      .joined(separator: Self.gap)
  }

  /// Returns the width available for the texts of `count` columns.
  private static func room(_ columns: Int, _ count: Int) -> Int { columns - gap.count * (count - 1) }

  /// Shrinks the widest columns until all fit.
  private mutating func shrink(to room: Int) {
    var excess = shown.reduce(0) { $0 + $1.width } - room
    while excess > 0, let widest = shown.map(\.width).max(), widest > 0 {
      let next = shown.map(\.width).filter { $0 < widest }.max() ?? 0
      let places = shown.indices.filter { shown[$0].width == widest }
      let step = min(widest - next, max(1, excess / places.count))
      for place in places.reversed() where excess > 0 {
        let taken = min(step, excess)
        shown[place].width -= taken
        excess -= taken
      }
    }
  }
}

/// The text of values in the cells of a table.
extension Value {
  /// A string or a reference without quotation marks, any other value as JSON.
  var plainText: String {
    switch self {
    case .string(let text): text
    case .reference(let reference): reference.text
    default: json
    }
  }

  /// True if this is an integer or another number.
  fileprivate var isNumber: Bool {
    switch self {
    case .integer, .number: true
    default: false
    }
  }

  /// True if this is a number or null.
  fileprivate var isNumberOrNull: Bool { isNumber || isNull }
}
