package import KeyValueModel

/// An error that prevents a store from starting.
package enum StoreError: Error, Sendable, CustomStringConvertible {
  /// The journal cannot be read, or is not as it was written.
  case journal(JournalError)
  /// A record of the journal cannot be replayed: its revision, and the reason.
  case replay(revision: Revision, reason: String)
  /// The schema under which the data was written can no longer be read.
  case storedSchema(String)
  /// The data does not fit the schema: the obstacles, one sentence each.
  case schema([String])

  /// The error and its place, in one sentence, or in one for each obstacle.
  package var description: String {
    switch self {
    case .journal(let error): "\(error)"
    case .replay(let revision, let reason): "revision \(revision) of the journal cannot be replayed: \(reason)"
    case .storedSchema(let reason): "the stored schema is not valid: \(reason)"
    case .schema(let obstacles):
      "the store's objects do not fit the schema:\n" + obstacles.map { "  \($0)" }.joined(separator: "\n")
    }
  }
}

extension StoreError {
  /// Runs `body`, and converts its `JournalError`.
  package static func of<Result>(_ body: () throws(JournalError) -> Result) throws(StoreError) -> Result {
    do throws(JournalError) {
      return try body()
    } catch {
      throw .journal(error)
    }
  }
}

extension Schema {
  /// Creates the schema under which a journal's records were written.
  init(stored identity: JournalIdentity) throws(StoreError) {
    do throws(SchemaError) {
      self = try Schema(yaml: identity.schema)
    } catch {
      throw .storedSchema(error.rendered(file: "schema"))
    }
  }
}

/// The failure of a write because the journal could not take it: nothing was changed, and no observer was notified.
package struct StoreUnavailable: Error, Hashable, Sendable {
  /// The fault of the disk, as text.
  package let reason: String
}

/// A notice for the operator of a store: sent once when a condition begins, and once when it is over.
package enum StoreNotice: Hashable, Sendable {
  /// The journal refuses writes, for this reason, which may name files. Reading still works.
  case refusesWrites(String)
  /// The journal accepts writes again.
  case takesWrites
  /// A write was refused because the objects would have taken more memory than the limits allow. Sent each time.
  case refusesGrowth
  /// A snapshot could not be written, for this reason; the journal grows until one is.
  case snapshotFailed(String)
  /// A snapshot was written again.
  case snapshotWritten
  /// This node's cache of a shared journal cannot be written, for this reason; everything else works.
  case cacheFailed(String)
  /// The cache can be written again.
  case cacheWritten
}
