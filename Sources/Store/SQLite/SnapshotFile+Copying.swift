extension SnapshotFile {
  /// Writes the state of a file under another header. Holds one block at a time.
  static func copy(_ source: SnapshotFile, _ header: Header, to path: String) throws(JournalError) {
    var frames = try FrameReader(source.path)
    _ = try frames.next()
    try write(header, to: path) { try frames.next() }
  }
}
