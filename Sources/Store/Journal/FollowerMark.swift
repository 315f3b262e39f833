import Glibc

/// Says of a directory that its store follows another node, so that no writes of its own are made there: two nodes that
/// both write would give one revision two meanings.
package enum FollowerMark {
  private static func path(_ directory: String) -> String { "\(directory)/following" }

  /// The second line of the file if the node asks who its clients are. Earlier versions read the first line alone.
  private static let accessLine = "access"

  /// The node that the store of a directory follows; nil where it follows none.
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

  /// Says that the store of a directory, which is made where it is not there, follows a node; `hasAccess` says that the
  /// node asks who its clients are.
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

  /// Says that the store of a directory follows no node.
  package static func remove(inDirectory directory: String) throws(JournalError) {
    try SystemFile.remove(path(directory))
    try SystemFile.syncDirectory(directory)
  }
}
