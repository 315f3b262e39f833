/// What a live query asks for (the specification, section 5): the objects of an entity that meet a filter, in an order,
/// in sections, the first of them or all, and what is shown of each. Two that were written alike are the same.
package struct Query: Hashable, Sendable {
  /// A query as it was written.
  package struct Words: Hashable, Sendable {
    /// The entity's name.
    package var entity: String
    /// The condition in CEL; nil for all objects.
    package var filter: String?
    /// Key paths, joined by commas, those with a `-` from the greatest to the least; nil for the order of references.
    package var sort: String?
    /// The key path by whose value the rows are put into sections.
    package var section: String?
    /// How many rows there are at most.
    package var limit: Int?
    /// The names of the keys that are shown; nil for all.
    package var keys: [String]?

    /// The query for all objects of an entity, with all their keys.
    package init(entity: String) {
      self.entity = entity
    }
  }

  /// The query as it was written.
  package let words: Words
  /// What the objects are.
  package let entity: Entity
  /// The condition, nil for all objects.
  package let filter: Filter?
  /// The order within a section, and of all rows where there are none.
  package let order: SortOrder
  /// By what the rows are put into sections, in ascending order.
  package let section: SortOrder.Key?
  /// The indexes of the keys that are shown, ascending; nil for all that an object has.
  package let keys: [Int]?
  /// Stored keys that must have exactly these values for an object to meet the filter. Dates are not among them, since
  /// one moment is written in many ways.
  package let equalities: [(key: Int, value: Value)]

  /// Resolves a query. Throws `unknown-entity`, what is wrong with a key path, and `invalid-value` for values that have
  /// no order; `malformed-filter` with line and column.
  package init(_ words: Words, in schema: Schema) throws(ModelError) {
    self.words = words
    let entity = try schema.requireEntity(words.entity)
    self.entity = entity
    order = try words.sort.map { text throws(ModelError) in try SortOrder(text, of: entity, in: schema) } ?? SortOrder()
    section = try words.section.map { text throws(ModelError) in try SortOrder.Key(text, of: entity, in: schema) }
    if let text = words.filter {
      do throws(KeyExpression.Mistake) {
        filter = try Filter(text, of: entity, in: schema)
      } catch {
        throw ModelError(.malformedFilter, "line \(error.line), column \(error.column): \(error.message)")
      }
    } else {
      filter = nil
    }
    equalities = (filter?.equalities ?? []).filter { entity.keys[$0.key].attribute?.type != .date }
    if let names = words.keys {
      var keys: Set<Int> = []
      for name in names {
        guard let index = entity.indexOfKey(name) else {
          throw ModelError(.undefinedKey, "\(entity.name) has no key '\(name)'", keyPath: name)
        }
        keys.insert(index)
      }
      self.keys = keys.sorted()
    } else {
      keys = nil
    }
  }

  /// The same when written alike.
  package static func == (left: Query, right: Query) -> Bool { left.words == right.words }

  /// Feeds what equality looks at.
  package func hash(into hasher: inout Hasher) { hasher.combine(words) }

  /// Whether an object's own stored keys leave it open that it meets the filter.
  package func mayBeMet(by record: ObjectRecord) -> Bool {
    func value(_ key: Int) -> Value? { record.entity.keys[key].storage.map { record.values[$0] } }
    return equalities.allSatisfy { value($0.key) == $0.value }
      && filter?.bounds.allSatisfy { bound in value(bound.key).map(bound.allows) ?? true } ?? true
  }

  /// The indexes of the keys that are shown of an object of `entity`.
  package func shownKeys(of entity: Entity) -> some Collection<Int> {
    keys ?? Array(entity.keys.indices)
  }

  /// What it reads of an object of `entity`, which is the query's or extends it.
  package func reads(of entity: Entity) -> KeyTree {
    var tree = filter?.reads ?? KeyTree()
    for key in order.keys { tree.merge(key.path.reads) }
    if let section { tree.merge(section.path.reads) }
    for key in shownKeys(of: entity) { tree.merge(KeyTree(path: [key])) }
    return tree
  }
}
