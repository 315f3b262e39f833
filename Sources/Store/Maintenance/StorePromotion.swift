import Glibc
package import KeyValueModel

/// Converts the store of a follower to one that takes writes.
package struct StorePromotion: Sendable {
  /// The node that it followed.
  package let leader: String
  /// The last revision of the store.
  package let revision: Revision
  /// The epoch before the promotion.
  package let previousEpoch: String
  /// The epoch after the promotion.
  package let epoch: String

  /// Promotes the store of a directory, which no process may be using. It keeps its records and the known idempotency
  /// keys. Without `newEpoch` it keeps its epoch: its next revisions then continue those of the node that it followed,
  /// which must never take writes again. Throws if the store follows no node, is in use or is damaged; in these cases
  /// nothing has changed. `milliseconds` is the time since 1970.
  package static func run(
    directory: String, milliseconds: Int64, newEpoch: (() -> String)?
  ) throws(StoreError) -> StorePromotion {
    try StoreError.of { () throws(JournalError) in
      guard let leader = try FollowerMark.read(inDirectory: directory) else {
        throw .invalid("\(directory): this store follows no node; it takes writes already")
      }
      guard SQLiteJournal.exists(inDirectory: directory) else {
        throw .unusable("\(directory): the store does not have a copy of \(leader) yet")
      }
      // Opened once, so that the last writes are in the database and verified.
      let journal = try SQLiteJournal(directory: directory, durability: .synced) {
        JournalIdentity(epoch: "", schema: "")
      }
      let (revision, before) = (journal.bounds.last, journal.identity.epoch)
      journal.close()
      var epoch = before
      if let newEpoch {
        let repair = try SQLiteJournal.repair(
          directory: directory, until: revision, milliseconds: milliseconds, isEpochNew: true, newEpoch: newEpoch)
        epoch = repair.identity.epoch
        for path in repair.movedAside { try SystemFile.remove(path) }
      }
      try FollowerMark.remove(inDirectory: directory)
      return StorePromotion(leader: leader, revision: revision, previousEpoch: before, epoch: epoch)
    }
  }
}

/// The file that marks the store of a directory as a follower of another node, so that it takes no writes of its own:
/// if two nodes took writes, a revision would have two meanings.
package enum FollowerMark {
  private static func path(_ directory: String) -> String { "\(directory)/following" }

  /// The second line of the file if the node asks who its clients are. Earlier versions read the first line alone.
  private static let accessLine = "access"

  /// Returns the node that the store of a directory follows; nil if it follows none.
  package static func read(inDirectory directory: String) throws(JournalError) -> String? {
    try lines(inDirectory: directory)?.first
  }

  /// Returns true if the node that the store of a directory follows was last known to ask who its clients are.
  package static func hasAccess(inDirectory directory: String) throws(JournalError) -> Bool {
    try lines(inDirectory: directory)?.dropFirst().first == accessLine
  }

  private static func lines(inDirectory directory: String) throws(JournalError) -> [String]? {
    let path = path(directory)
    guard SystemFile.exists(path) else { return nil }
    let bytes = try SystemFile(path, O_RDONLY).read(4_096)
    return bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  /// Marks the store of a directory, which is created if it does not exist, as a follower of a node. `hasAccess` is
  /// true if the node asks who its clients are.
  package static func write(
    _ node: String, hasAccess: Bool = false, inDirectory directory: String
  ) throws(JournalError) {
    try SystemFile.makeDirectory(directory)
    let draft = path(directory) + ".draft"
    let file = try SystemFile(draft, O_WRONLY | O_CREAT | O_TRUNC)
    try file.write(Array("\(node)\n\(hasAccess ? "\(accessLine)\n" : "")".utf8))
    try file.sync()
    try SystemFile.rename(draft, to: path(directory))
    try SystemFile.syncDirectory(directory)
  }

  /// Removes the mark, so that the store of a directory follows no node.
  package static func remove(inDirectory directory: String) throws(JournalError) {
    try SystemFile.remove(path(directory))
    try SystemFile.syncDirectory(directory)
  }
}
