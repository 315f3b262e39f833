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

/// A write that came to nothing because the journal could not take it: nothing was changed, and no observer was
/// notified.
package struct StoreUnavailable: Error, Hashable, Sendable {
  /// What is wrong with the disk, in words.
  package let reason: String
}

/// What an operator should know of a store: told once when it begins, and once when it is over.
package enum StoreNotice: Hashable, Sendable {
  /// The journal takes no writes, for this reason, which may name files. Reading goes on.
  case refusesWrites(String)
  /// It takes writes again.
  case takesWrites
  /// A write was refused because it would have the objects take more memory than they may. Told each time.
  case refusesGrowth
  /// The state could not be written down, for this reason; the journal grows until it can.
  case snapshotFailed(String)
  /// It was written down.
  case snapshotWritten
  /// What this node keeps of a journal that it shares cannot be written, for this reason; all else goes on.
  case cacheFailed(String)
  /// It can be written again.
  case cacheWritten
}
