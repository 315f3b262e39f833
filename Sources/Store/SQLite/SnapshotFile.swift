import Foundation
import Glibc
import Support

/// A state in a file: what a journal's snapshots and backups are.
///
/// A line that names the format, then frames: the length of the content (four bytes, little-endian), the link of the
/// chain of digests up to and with it (eight bytes), the content. The first frame is the header as JSON, an empty one
/// is the last, and nothing follows it; so a file that is cut off anywhere, or has a byte changed anywhere, is found
/// out.
package struct SnapshotFile: Sendable {
  /// What the file says of itself.
  package struct Header: Hashable, Sendable, Codable {
    /// The store that the state is of.
    package let epoch: String
    /// The last revision that is in it.
    package let revision: UInt64
    /// The digest of the journal's chain there.
    package let digest: JournalDigest
    /// When it was written, in milliseconds since 1970.
    package let milliseconds: Int64
    /// The text of the schema under which the objects stand.
    package let schema: String
    /// In a backup, the revocations of tokens, of which no record tells.
    package var revocations: [Revocation]?

    /// A header of these parts.
    package init(
      epoch: String, revision: UInt64, digest: JournalDigest, milliseconds: Int64, schema: String,
      revocations: [Revocation]? = nil
    ) {
      self.epoch = epoch
      self.revision = revision
      self.digest = digest
      self.milliseconds = milliseconds
      self.schema = schema
      self.revocations = revocations
    }
  }

  /// What it says of itself.
  package let header: Header
  private let path: String

  private static let magic = Array("keyway snapshot 1\n".utf8)
  /// The largest content of a frame, in bytes: more is a length that was not written.
  package static let maximumBlock = 256 * 1024 * 1024

  /// Opens a file and reads its header. Throws `damaged` where that is not one, `refused` where it cannot be read.
  package init(path: String) throws(JournalError) {
    var frames = try FrameReader(path)
    guard let content = try frames.next() else { throw .damaged(place: path, reason: "it has no header") }
    do {
      header = try JSONDecoder().decode(Header.self, from: Data(content))
    } catch {
      throw .damaged(place: path, reason: "its header is not one")
    }
    self.path = path
  }

  /// Gives the blocks in order; what follows the last one, or is missing, is `damaged`.
  package func read(_ receive: ([UInt8]) throws -> Void) throws {
    var frames = try FrameReader(path)
    _ = try frames.next()
    while let block = try frames.next() { try receive(block) }
  }

  /// Writes a file under a name that is there only once it is whole and on the disk. Takes blocks until `next` gives
  /// nil.
  package static func write(
    _ header: Header, to path: String, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try write(header, to: path) { receive throws(JournalError) in
      while let block = try JournalError.block(next) { try receive(block) }
    }
  }

  /// The same with blocks that `give` gives to the function that it gets.
  package static func write(
    _ header: Header, to path: String,
    giving give: (_ receive: ([UInt8]) throws(JournalError) -> Void) throws(JournalError) -> Void
  ) throws(JournalError) {
    let draft = "\(path).draft"
    do throws(JournalError) {
      let file = try SystemFile(draft, O_WRONLY | O_CREAT | O_TRUNC)
      try file.write(magic)
      var digest = JournalDigest.start
      try append(try encoded(header), to: file, &digest)
      try give { block throws(JournalError) in
        if !block.isEmpty { try append(block, to: file, &digest) }
      }
      try append([], to: file, &digest)
      try file.sync()
      try SystemFile.rename(draft, to: path)
      try SystemFile.syncDirectory(directory(of: path))
    } catch {
      try? SystemFile.remove(draft)
      throw error
    }
  }

  private static func encoded(_ header: Header) throws(JournalError) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do {
      return Array(try encoder.encode(header))
    } catch {
      throw .invalid("a snapshot's header cannot be written: \(error)")
    }
  }

  private static func append(
    _ content: [UInt8], to file: SystemFile, _ digest: inout JournalDigest
  ) throws(JournalError) {
    digest = digest.linked(to: content)
    var frame: [UInt8] = []
    frame.reserveCapacity(content.count + 12)
    frame.append(littleEndian: UInt32(content.count))
    frame.append(littleEndian: digest.value)
    frame.append(contentsOf: content)
    try file.write(frame)
  }

  private static func directory(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Reads one frame after the other.
  private struct FrameReader {
    private let file: SystemFile
    private var digest = JournalDigest.start
    private var offset: Int

    init(_ path: String) throws(JournalError) {
      file = try SystemFile(path, O_RDONLY)
      guard try file.read(magic.count) == magic else {
        throw .damaged(place: path, reason: "it does not begin as a snapshot of this version does")
      }
      offset = magic.count
    }

    /// The next content; nil at the end, which is where it should be.
    mutating func next() throws(JournalError) -> [UInt8]? {
      var head = try file.read(12)[...]
      guard let length = head.takeInteger(UInt32.self).map({ Int($0) }), let link = head.takeInteger(UInt64.self) else {
        throw damaged("it ends")
      }
      let size = try file.size()
      guard length <= maximumBlock, offset + 12 + length <= size else { throw damaged("a length is wrong, or it ends") }
      let content = try file.read(length)
      digest = digest.linked(to: content)
      guard digest.value == link else { throw damaged("it is not what was written") }
      offset += 12 + length
      guard length == 0 else { return content }
      guard offset == size else { throw damaged("something follows the end") }
      return nil
    }

    private func damaged(_ reason: String) -> JournalError {
      .damaged(place: "\(file.path), byte \(offset)", reason: reason)
    }
  }

  /// Writes the state of a file under another header. Holds one block at a time.
  static func copy(_ source: SnapshotFile, _ header: Header, to path: String) throws(JournalError) {
    var frames = try FrameReader(source.path)
    _ = try frames.next()
    try write(header, to: path) { try frames.next() }
  }
}

/// A snapshot's file as it was found.
package struct StoredSnapshot: Hashable, Sendable {
  /// What it is good for.
  package enum Condition: Hashable, Sendable {
    /// Every byte is what was written, and it is one of the journal.
    case whole
    /// It is not what was written: where and how.
    case damaged(String)
    /// It is whole, and the journal has no use for it: why.
    case unused(String)
  }

  /// The name of the file in the directory of snapshots.
  package let name: String
  /// The file with its path.
  package let path: String
  /// The revision that the name says.
  package let revision: UInt64
  /// How long the file is.
  package let byteCount: Int
  /// What the file says of itself; nil where that cannot be read.
  package let header: SnapshotFile.Header?
  /// What it is good for.
  package private(set) var condition: Condition

  /// Reads a file through; nil for one that is no snapshot, or that was taken away meanwhile.
  init?(name: String, _ layout: JournalLayout) {
    guard let revision = JournalLayout.revision(ofSnapshot: name) else { return nil }
    self.name = name
    self.revision = revision
    path = "\(layout.snapshots)/\(name)"
    byteCount = SystemFile.size(of: path)
    var found: SnapshotFile.Header?
    do {
      let file = try SnapshotFile(path: path)
      found = file.header
      try file.read { _ in }
      let isNamed = file.header.revision == revision
      condition = isNamed ? .whole : .damaged("\(path): it is of revision \(file.header.revision)")
    } catch {
      guard SystemFile.exists(path) else { return nil }
      condition = .damaged("\(error)")
    }
    header = found
  }

  /// Tells whether it is one of the journal, which ends with `last`. A later one that was `acknowledged` is a state
  /// that the records have lost.
  mutating func fit(to head: JournalDatabase.Head, last: UInt64, acknowledged: UInt64) {
    guard condition == .whole, let header else { return }
    if revision < head.base {
      condition = .unused("it is from before revision \(head.base), where the records begin")
    } else if header.epoch != head.epoch {
      condition = .unused("it is of epoch \(header.epoch)")
    } else if header.schema != head.schema {
      condition = .unused("it is of another schema")
    } else if revision > last, revision > acknowledged {
      condition = .unused("it is from after revision \(last), where the records end")
    } else if revision == head.base, header.digest != head.baseDigest {
      condition = .unused("it is of other records")
    }
  }
}
