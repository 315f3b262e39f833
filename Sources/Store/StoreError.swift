package import KeyValueModel

/// Why a store does not start.
package enum StoreError: Error, Sendable, CustomStringConvertible {
  /// The journal cannot be read, or is not what was written.
  case journal(JournalError)
  /// A record of the journal cannot be carried out again: at which revision, and why.
  case replay(revision: Revision, reason: String)
  /// The schema that the data was written under cannot be read any more.
  case storedSchema(String)
  /// The data does not fit the schema: what stands in the way, a sentence each.
  case schema([String])

  /// What is wrong and where, in a sentence or one for each obstacle.
  package var description: String {
    switch self {
    case .journal(let error): "\(error)"
    case .replay(let revision, let reason): "revision \(revision) of the journal cannot be carried out again: \(reason)"
    case .storedSchema(let reason): "the schema that the store was written under: \(reason)"
    case .schema(let obstacles):
      "the store's objects do not fit the schema:\n" + obstacles.map { "  \($0)" }.joined(separator: "\n")
    }
  }
}

extension StoreError {
  /// Does something with a journal.
  package static func of<Result>(_ body: () throws(JournalError) -> Result) throws(StoreError) -> Result {
    do throws(JournalError) {
      return try body()
    } catch {
      throw .journal(error)
    }
  }
}

extension Schema {
  /// The schema under which a journal's records were written.
  init(stored identity: JournalIdentity) throws(StoreError) {
    do throws(SchemaError) {
      self = try Schema(yaml: identity.schema)
    } catch {
      throw .storedSchema(error.rendered(file: "schema"))
    }
  }
}
