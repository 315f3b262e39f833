import Foundation
import Glibc
import Support

/// A state in a file, used for a journal's snapshots and for backups.
///
/// The file has a line that names the format, and then frames: the length of the content (four bytes, little-endian),
/// the link of the chain of digests up to and including it (eight bytes), and the content. The first frame is the
/// header as JSON, an empty frame is the last, and nothing follows it; so a file that is cut off anywhere, or has a
/// changed byte anywhere, is detected.
package struct SnapshotFile: Sendable {
  /// The header of the file.
  package struct Header: Hashable, Sendable, Codable {
    /// The epoch of the store.
    package let epoch: String
    /// The last revision included in the state.
    package let revision: UInt64
    /// The digest of the journal's chain at that revision.
    package let digest: JournalDigest
    /// The time of writing, in milliseconds since 1970.
    package let milliseconds: Int64
    /// The text of the schema of the objects.
    package let schema: String
    /// In a backup, the revocations of tokens, which are not in the records.
    package var revocations: [Revocation]?

    /// Creates a header.
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

  /// The header of the file.
  package let header: Header
  private let path: String

  private static let magic = Array("keyway snapshot 1\n".utf8)
  /// The maximum content of a frame, in bytes: a greater length is damage.
  package static let maximumBlock = 256 * 1024 * 1024

  /// Opens a file and reads its header. Throws `damaged` if the header is invalid, and `refused` if the file cannot be
  /// read.
  package init(path: String) throws(JournalError) {
    var frames = try FrameReader(path)
    guard let content = try frames.next() else { throw .damaged(place: path, reason: "it has no header") }
    do {
      header = try JSONDecoder().decode(Header.self, from: Data(content))
    } catch {
      throw .damaged(place: path, reason: "its header is not valid")
    }
    self.path = path
  }

  /// Passes the blocks to `receive` in order. Throws `damaged` if the end is missing or followed by anything.
  package func read(_ receive: ([UInt8]) throws -> Void) throws {
    var frames = try FrameReader(path)
    _ = try frames.next()
    while let block = try frames.next() { try receive(block) }
  }

  /// Writes a file whose name appears only once it is complete and on the disk. Takes blocks until `next` returns nil.
  package static func write(
    _ header: Header, to path: String, _ next: () throws -> [UInt8]?
  ) throws(JournalError) {
    try write(header, to: path) { receive throws(JournalError) in
      while let block = try JournalError.block(next) { try receive(block) }
    }
  }

  /// Writes a file, as `write(_:to:_:)` does, with the blocks that `give` passes to its argument.
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

  /// Reads one frame after another.
  private struct FrameReader {
    private let file: SystemFile
    private var digest = JournalDigest.start
    private var offset: Int

    init(_ path: String) throws(JournalError) {
      file = try SystemFile(path, O_RDONLY)
      guard try file.read(magic.count) == magic else {
        throw .damaged(place: path, reason: "it is not a snapshot of this version")
      }
      offset = magic.count
    }

    /// Returns the next content; nil at the expected end.
    mutating func next() throws(JournalError) -> [UInt8]? {
      var head = try file.read(12)[...]
      guard let length = head.takeInteger(UInt32.self).map({ Int($0) }), let link = head.takeInteger(UInt64.self) else {
        throw damaged("it is truncated")
      }
      let size = try file.size()
      guard length <= maximumBlock, offset + 12 + length <= size else {
        throw damaged("a length is wrong, or the file is truncated")
      }
      let content = try file.read(length)
      digest = digest.linked(to: content)
      guard digest.value == link else { throw damaged("it is not what was written") }
      offset += 12 + length
      guard length == 0 else { return content }
      guard offset == size else { throw damaged("there is data after the end") }
      return nil
    }

    private func damaged(_ reason: String) -> JournalError {
      .damaged(place: "\(file.path), byte \(offset)", reason: reason)
    }
  }

  /// Writes the state of a file with another header. Holds one block at a time.
  static func copy(_ source: SnapshotFile, _ header: Header, to path: String) throws(JournalError) {
    var frames = try FrameReader(source.path)
    _ = try frames.next()
    try write(header, to: path) { try frames.next() }
  }
}

/// The file of a snapshot as it was found.
package struct StoredSnapshot: Hashable, Sendable {
  /// The condition of a snapshot's file.
  package enum Condition: Hashable, Sendable {
    /// Every byte is as it was written, and the snapshot belongs to the journal.
    case whole
    /// The file is not as it was written: the place and the reason.
    case damaged(String)
    /// The file is intact, but the journal cannot use it: the reason.
    case unused(String)
  }

  /// The name of the file in the snapshots directory.
  package let name: String
  /// The path of the file.
  package let path: String
  /// The revision in the name.
  package let revision: UInt64
  /// The size of the file in bytes.
  package let byteCount: Int
  /// The header of the file; nil if it cannot be read.
  package let header: SnapshotFile.Header?
  /// The condition of the file.
  package private(set) var condition: Condition

  /// Reads a file completely; nil if it is not a snapshot, or was removed in the meantime.
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
      condition = isNamed ? .whole : .damaged("\(path): its header has revision \(file.header.revision)")
    } catch {
      guard SystemFile.exists(path) else { return nil }
      condition = .damaged("\(error)")
    }
    header = found
  }

  /// Determines whether the snapshot belongs to the journal, which ends with `last`. A later snapshot whose revision
  /// was `acknowledged` is a state that the records have lost.
  mutating func fit(to head: JournalDatabase.Head, last: UInt64, acknowledged: UInt64) {
    guard condition == .whole, let header else { return }
    if revision < head.base {
      condition = .unused("it is from before revision \(head.base), where the records begin")
    } else if header.epoch != head.epoch {
      condition = .unused("it belongs to epoch \(header.epoch)")
    } else if header.schema != head.schema {
      condition = .unused("it has another schema")
    } else if revision > last, revision > acknowledged {
      condition = .unused("it is from after revision \(last), where the records end")
    } else if revision == head.base, header.digest != head.baseDigest {
      condition = .unused("it belongs to other records")
    }
  }
}
