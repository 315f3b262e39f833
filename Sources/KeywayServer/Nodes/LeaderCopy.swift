import Foundation
import KeyValueModel
package import Store

/// What a follower begins with: the identity of the store that it follows, and a file of its state.
package struct LeaderCopy: Sendable {
  /// The epoch and the schema.
  package let identity: JournalIdentity
  /// True if the node asks who its clients are.
  package let hasAccess: Bool
  /// The file; nil where it begins with the empty store.
  package let snapshotPath: String?

  /// Fetches a copy of what a node has into a directory that exists.
  ///
  /// - Parameters:
  ///   - schema: The text of the only schema that will do, if there is one: comments and layout may differ.
  ///   - mayHaveAccess: False if the node must not be one that asks who its clients are.
  /// - Throws: The reason why there is none; then no file is left.
  package static func fetch(
    from leader: Leader, into directory: String, schema: String?, mayHaveAccess: Bool
  ) throws(Leader.Refusal) -> LeaderCopy {
    let description = try leader.description()
    let (identity, hasAccess) = (description.identity, description.hasAccess)
    guard mayHaveAccess || !hasAccess else { throw leader.accessRefusal }
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: identity.schema) {
      throw .otherSchema(
        "its schema is another than this node was given: a follower has the schema of \(leader.client.address); start "
          + "it without --schema, or with that one")
    }
    let path = "\(directory)/joining.snapshot"
    guard try leader.writeSnapshot(to: path) else {
      return LeaderCopy(identity: identity, hasAccess: hasAccess, snapshotPath: nil)
    }
    do {
      // Read through: what was cut off or damaged on the way is found before anything depends on it.
      let file = try SnapshotFile(path: path)
      try file.read { _ in }
      guard file.header.epoch == identity.epoch, file.header.schema == identity.schema else {
        throw NodeFault("its store has become another meanwhile")
      }
    } catch {
      try? FileManager.default.removeItem(atPath: path)
      throw .fault(NodeFault("its snapshot is of no use: \(error)"))
    }
    return LeaderCopy(identity: identity, hasAccess: hasAccess, snapshotPath: path)
  }
}
