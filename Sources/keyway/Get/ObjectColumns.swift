import KeyValueModel
import KeywayClient
import OrderedCollections

/// Objects below each other in columns, for a terminal.
///
/// The first objects decide which columns there are and how wide they are; those of later pages are fitted in.
struct ObjectColumns: Sendable {
  private let layout: ColumnLayout

  /// Columns for these objects and those like them: `@ref`, and the keys that they have.
  init(for objects: [Value], columns: Int) {
    let rows = Self.rows(of: objects)
    var names = OrderedSet<String>()
    for row in rows { names.formUnion(row.value.members.keys) }
    for name in ["@ref", "@revision"] { names.remove(name) }
    layout = ColumnLayout(["@ref"] + names, rows: rows, columns: columns)
  }

  /// The names of the keys.
  var heading: StyledLine { StyledLine(layout.heading, .underlined) }

  /// How many keys there was no room for.
  var hiddenCount: Int { layout.hiddenCount }

  /// A line for each object.
  func lines(for objects: [Value]) -> [StyledLine] {
    Self.rows(of: objects).map { StyledLine(layout.text(of: $0)) }
  }

  /// What is said below: how many of all there are, where these are not all, and how many columns are hidden; nil where
  /// nothing is left out.
  func remark(shown: Int, of count: Int64?) -> StyledLine? {
    var clauses: [String] = []
    if let count, count > shown {
      clauses.append("\(ImportSummary.grouped(shown)) of \(ImportSummary.grouped(Int(clamping: count))) objects")
    }
    if hiddenCount > 0 {
      clauses.append("\(hiddenCount) \(hiddenCount == 1 ? "column" : "columns") hidden; --keys names those to show")
    }
    return clauses.isEmpty ? nil : StyledLine("… " + clauses.joined(separator: ", "), .dim)
  }

  private static func rows(of objects: [Value]) -> [LiveRow] {
    objects.compactMap { object in
      guard let value = object.asObject, let reference = value["@ref"]?.asString.flatMap({ Reference($0) }) else {
        return nil
      }
      return LiveRow(reference: reference, value: value)
    }
  }
}
