import KeyValueModel
import KeywayClient
import OrderedCollections

/// The table that `keyway watch` shows for a live query: its rows, the changes of the last event, and the state of the
/// stream.
///
/// A value that needs no terminal: events and notices go in, lines come out (`lines(for:)`).
struct LiveTable: Sendable {
  /// The requested keys. Empty for all keys that the rows have.
  private let keys: [String]
  private var list = LiveList()
  /// The marks of the rows that the last event with changes changed.
  private(set) var marks: [Reference: RowMark] = [:]
  /// A summary of the changes of that event.
  private var tally = ""
  /// The event id from which the stream can resume.
  private(set) var cursor = ""
  /// The state of the connection, in a few words.
  private var connection = "connecting"

  init(keys: [String] = []) { self.keys = keys }

  /// Applies the next event of the stream.
  mutating func apply(_ event: ServerSentEvent) throws(LiveListError) {
    let content = try list.apply(event)
    cursor = event.id
    switch event.event {
    case "results":
      marks = [:]
      tally = ""
    case "content":
      mark(content?.changes ?? [])
    case "reset", "bye":
      connection = "\(event.event): \(Self.reason(event))"
    default:
      break
    }
    if list.isCurrent, event.event != "bye" { connection = "live" }
  }

  /// Records a notice about the connection.
  mutating func note(_ notice: EventStreamNotice) {
    switch notice {
    case .opened: connection = "live"
    case .reconnecting(let reason, let delay): connection = "\(reason); coming back in \(Double(delay) / 1000) s"
    }
  }

  private mutating func mark(_ changes: [LiveChange]) {
    marks = [:]
    var counts: [LiveChange.Kind: Int] = [:]
    for change in changes {
      marks[change.reference] = RowMark(change)
      counts[change.kind, default: 0] += 1
    }
    let signs: [(LiveChange.Kind, String)] = [(.insert, "+"), (.delete, "−"), (.move, "↕"), (.update, "•")]
    tally = signs.compactMap { kind, sign in counts[kind].map { sign + String($0) } }.joined(separator: " ")
  }

  private static func reason(_ event: ServerSentEvent) -> String {
    (try? Value(json: event.data))?.asObject?["reason"]?.asString ?? "?"
  }
}

// MARK: Lines: a heading, as many rows as there is room for, and one about the stream

extension LiveTable {
  /// A line between the heading and the status: the heading of a section, or a row.
  private enum Line {
    case section(Value, count: Int)
    case row(LiveRow)
  }

  /// The minimum width of a table.
  static let minimumColumns = 8

  /// Returns the lines for a terminal of this size: no more than it has, and none wider unless it is narrower than
  /// `minimumColumns`.
  func lines(for size: TerminalSize) -> [StyledLine] {
    let size = TerminalSize(columns: max(size.columns, Self.minimumColumns), rows: size.rows)
    let capacity = max(0, size.rows - 2)
    var body = bodyLines(atMost: capacity + 1)
    let isCut = body.count > capacity
    if isCut {
      body = Array(body.prefix(max(0, capacity - 1)))
      if case .section? = body.last { body.removeLast() }
    }
    let rows = body.compactMap { line -> LiveRow? in
      guard case .row(let row) = line else { return nil }
      return row
    }
    let layout = ColumnLayout(columnNames(of: rows), rows: rows, columns: size.columns - Self.gutter)
    var lines = [heading(layout)]
    for line in body {
      switch line {
      case .section(let name, let count): lines.append(Self.section(name, count: count, size))
      case .row(let row): lines.append(self.row(row, layout))
      }
    }
    if isCut {
      lines.append(Self.remark("… \(list.count - rows.count) more rows", size))
    } else if body.isEmpty {
      lines.append(Self.remark(list.isCurrent ? "no rows" : "no results yet", size))
    }
    return Array(lines.prefix(max(0, size.rows - 1))) + [status(size, hidden: layout.hiddenCount)]
  }

  /// The number of columns before a row, for its mark.
  private static let gutter = 2

  private func bodyLines(atMost count: Int) -> [Line] {
    var lines: [Line] = []
    for section in list.sections {
      if let name = section.name { lines.append(.section(name, count: section.count)) }
      lines += section.rows.prefix(max(0, count - lines.count)).map(Line.row)
      if lines.count >= count { break }
    }
    return lines
  }

  /// Returns `@ref` and the requested keys, or the keys of the rows in order of appearance.
  private func columnNames(of rows: [LiveRow]) -> [String] {
    var names = OrderedSet(keys)
    if keys.isEmpty {
      for row in rows { names.formUnion(row.value.members.keys) }
      // This is the revision of the last event about the row, which is less useful than the cursor.
      names.remove("@revision")
    }
    names.remove("@ref")
    return ["@ref"] + names
  }

  private func heading(_ layout: ColumnLayout) -> StyledLine {
    var line = StyledLine(String(repeating: " ", count: Self.gutter))
    line.append(layout.heading, .underlined)
    return line
  }

  private func row(_ row: LiveRow, _ layout: ColumnLayout) -> StyledLine {
    let mark = marks[row.reference]
    var line = StyledLine(mark?.sign ?? " ", mark?.signStyle ?? [])
    line.append(" ")
    line.append(layout.text(of: row), mark?.style ?? [])
    return line
  }

  private static func section(_ name: Value, count: Int, _ size: TerminalSize) -> StyledLine {
    let text = "── \(TerminalText.clean(name.plainText)) (\(count)) "
    let rule = String(repeating: "─", count: max(0, size.columns - TerminalText.width(text)))
    return StyledLine(TerminalText.fitted(text + rule, columns: size.columns), .dim)
  }

  private static func remark(_ text: String, _ size: TerminalSize) -> StyledLine {
    StyledLine(TerminalText.fitted("  " + text, columns: size.columns), .dim)
  }

  private func status(_ size: TerminalSize, hidden: Int) -> StyledLine {
    var parts = [cursor, "\(list.count) \(list.count == 1 ? "row" : "rows")", connection, tally]
    if hidden > 0 { parts.append("\(hidden) \(hidden == 1 ? "column" : "columns") hidden") }
    let text = parts.filter { !$0.isEmpty }.map { TerminalText.clean($0) }.joined(separator: " · ")
    return StyledLine(TerminalText.fitted(text, columns: size.columns), .inverse)
  }
}

/// The mark in the table for the change of a row by the last event.
enum RowMark: Hashable, Sendable {
  case inserted, movedUp, movedDown, updated

  /// Creates the mark of a change. Nil for a deletion, which leaves no row to mark.
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

  fileprivate var sign: String {
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

  fileprivate var signStyle: TextStyle {
    switch self {
    case .movedUp, .movedDown: [.yellow, .inverse]
    default: style
    }
  }
}
