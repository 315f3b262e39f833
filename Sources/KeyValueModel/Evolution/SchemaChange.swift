/// One way in which a new schema differs from an old one, for the log of a start.
package struct SchemaChange: Hashable, Sendable, CustomStringConvertible {
  /// The entity by its new name, or the old one where it is gone.
  package let entity: String
  /// The key, where the change is about one.
  package let key: String?
  /// What is different, as a clause: `is new, and null in all objects`.
  package let change: String

  /// Place and change in a line: `Account.note is new, and null in all objects`.
  package var description: String { "\(key.map { "\(entity).\($0)" } ?? entity) \(change)" }
}
