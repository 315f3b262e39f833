/// An aggregate over the rows of a query: `@count`, or an operator over the values of a key path, such as `@sum.size`.
package struct QueryAggregate: Hashable, Sendable {
  /// The operator as it was written, which is also its name in responses.
  package let text: String
  /// The function that combines the values.
  private let function: CollectionFold.Function
  /// The path from each row to its value; nil for `@count`.
  package let path: ModelKeyPath?

  /// The maximum number of aggregates of one query.
  package static let maximumCount = 32

  /// Parses operators such as `@count,@sum.size`; a repeated one counts once.
  ///
  /// Throws `malformed-query` for text that is not an operator and for paths through collections, an error for an
  /// invalid key path, and `invalid-value` if the operator does not accept the values of its path.
  static func read(_ text: String, of entity: Entity, in schema: Schema) throws(ModelError) -> [QueryAggregate] {
    var aggregates: [QueryAggregate] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard !aggregates.contains(where: { $0.text == part }) else { continue }
      guard aggregates.count < maximumCount else {
        throw ModelError(.malformedQuery, "aggregate has at most \(maximumCount) operators")
      }
      aggregates.append(try QueryAggregate(String(part), of: entity, in: schema))
    }
    return aggregates
  }

  private init(_ text: String, of entity: Entity, in schema: Schema) throws(ModelError) {
    self.text = text
    let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
    let behind = parts.count > 1 ? String(parts[1]) : nil
    switch (CollectionOperator(rawValue: String(parts[0])), behind) {
    case (.count, nil): (function, path) = (.count, nil)
    case (.sum, let behind?): (function, path) = (.sum, try Self.path(behind, of: text, entity, schema))
    case (.average, let behind?): (function, path) = (.average, try Self.path(behind, of: text, entity, schema))
    case (.minimum, let behind?): (function, path) = (.minimum, try Self.path(behind, of: text, entity, schema))
    case (.maximum, let behind?): (function, path) = (.maximum, try Self.path(behind, of: text, entity, schema))
    default:
      throw ModelError(
        .malformedQuery,
        "aggregate: '\(text)' is unknown; use @count, or @sum, @avg, @min or @max with a key path, as in @sum.size")
    }
    if let path, let refusal = Self.refusal(function, path) {
      throw ModelError(.invalidValue, "aggregate: '\(text)' \(refusal)", keyPath: path.text)
    }
  }

  private static func path(
    _ path: String, of text: String, _ entity: Entity, _ schema: Schema
  ) throws(ModelError) -> ModelKeyPath {
    let resolved = try schema.resolve(path, from: entity)
    guard resolved.operation == nil, resolved.type.element == nil else {
      throw ModelError(.malformedQuery, "aggregate: '\(text)' leads through a collection", keyPath: path)
    }
    return resolved
  }

  private static func refusal(_ function: CollectionFold.Function, _ path: ModelKeyPath) -> String? {
    switch (function, path.type) {
    case (_, .attribute(.integer)), (_, .attribute(.number)): nil
    case (.minimum, .attribute(.string)), (.minimum, .attribute(.date)): nil
    case (.maximum, .attribute(.string)), (.maximum, .attribute(.date)): nil
    case (.minimum, _), (.maximum, _):
      "takes numbers, strings and dates, but its key path leads to \(path.type.article)"
    default: "takes numbers, but its key path leads to \(path.type.article)"
    }
  }

  /// Returns the value that a row contributes, as `reader` has it.
  package func value(of reference: Reference, in reader: some ObjectReader) -> Value {
    guard let path else { return .null }
    // The result must not depend on which of two zeros came first.
    return reader.value(of: reference, at: path).withoutSignOfZero
  }

  /// The fold over no rows.
  fileprivate var fold: RunningFold {
    RunningFold(
      function, isOverDates: path?.type == .attribute(.date), isOverNumbers: path?.type == .attribute(.number))
  }
}

/// The aggregates of a query, kept up to date while rows come, go and change: for each section, or for all rows if the
/// query has no sections. A change of a row costs O(1), or O(log n) for the minimum and the maximum.
package struct QueryFolds: Sendable {
  private struct Group: Sendable {
    var rowCount = 0
    var folds: [RunningFold]
  }

  private let empty: [RunningFold]
  /// The groups by the key of their section; only `null` if the query has no sections.
  private var groups: [Value: Group] = [:]

  /// The folds of a query over no rows.
  package init(of query: Query) { empty = query.aggregates.map(\.fold) }

  /// True if the query has no aggregates.
  package var isEmpty: Bool { empty.isEmpty }

  /// Adds a row.
  package mutating func insert(_ row: QueryRow) {
    guard !empty.isEmpty else { return }
    change(row) { group in
      group.rowCount += 1
      for index in group.folds.indices { group.folds[index].insert(.value(row.folded[index])) }
    }
  }

  /// Removes a row that was inserted.
  package mutating func remove(_ row: QueryRow) {
    guard !empty.isEmpty else { return }
    change(row) { group in
      group.rowCount -= 1
      for index in group.folds.indices { group.folds[index].remove(.value(row.folded[index])) }
    }
    let key = Self.key(of: row.section)
    if groups[key]?.rowCount == 0 { groups[key] = nil }
  }

  private mutating func change(_ row: QueryRow, _ body: (inout Group) -> Void) {
    body(&groups[Self.key(of: row.section), default: Group(folds: empty)])
  }

  /// Returns the aggregates of a section's rows, or with nil those of all rows of a query without sections.
  package func values(of section: QuerySection?) -> [Value] {
    (groups[Self.key(of: section)]?.folds ?? empty).map { fold in
      if case .value(let value) = fold.value { value } else { .null }
    }
  }

  /// Returns the key of a section's group, which is the same for every form in which its rows have the value.
  private static func key(of section: QuerySection?) -> Value {
    switch section?.name {
    case nil: .null
    case .reference(let reference)?: .string(reference.text)
    case let name? where name.elements != nil: .array([.string(name.json)])
    case .object(let object)?: .array([.string(Value.object(object).json)])
    case let name?: name
    }
  }
}
