import Foundation
package import Journal
import KeyValueModel

/// What a follower begins with: the identity of the store that it follows, and a file of its state.
package struct LeaderCopy: Sendable {
  /// The epoch and the schema.
  package let identity: JournalIdentity
  /// The file; nil where it begins with the empty store.
  package let snapshotPath: String?

  /// Fetches a copy of what a node has into a directory that is there. `schema` is the text of the one schema that will
  /// do, where there is one: comments and layout may differ. Throws why there is none; then no file is left.
  package static func fetch(
    from leader: Leader, into directory: String, schema: String?
  ) throws(Leader.Refusal) -> LeaderCopy {
    let identity = try leader.identity()
    if let schema, Schema.fingerprint(ofYAML: schema) != Schema.fingerprint(ofYAML: identity.schema) {
      throw .otherSchema(
        "its schema is another than this node was given: a follower has the schema of \(leader.client.address); start "
          + "it without --schema, or with that one")
    }
    let path = "\(directory)/joining.snapshot"
    guard try leader.writeSnapshot(to: path) else { return LeaderCopy(identity: identity, snapshotPath: nil) }
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
    return LeaderCopy(identity: identity, snapshotPath: path)
  }
}
