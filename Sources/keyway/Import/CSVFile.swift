internal import Foundation

/// The records of a CSV file, read piece by piece.
struct CSVFile {
  /// The name as it was given, for messages.
  let name: String
  /// How large the file is.
  let size: Int
  /// How much of it has been read.
  private(set) var bytesRead = 0

  private let handle: FileHandle
  private var parser = CSVParser()
  private var waiting: ArraySlice<CSVRecord> = []
  private var isAtEnd = false

  /// Opens a file.
  init(_ name: String) throws(ImportError) {
    self.name = name
    guard let handle = FileHandle(forReadingAtPath: name), let size = try? handle.seekToEnd() else {
      throw ImportError(file: name, line: 0, reason: "there is no such file, or it cannot be read")
    }
    do {
      try handle.seek(toOffset: 0)
    } catch {
      throw ImportError(file: name, line: 0, reason: "only a regular file can be imported")
    }
    self.handle = handle
    self.size = Int(size)
  }

  /// The next record; nil at the end.
  mutating func next() throws(ImportError) -> CSVRecord? {
    while waiting.isEmpty, !isAtEnd { try readPiece() }
    return waiting.popFirst()
  }

  private mutating func readPiece() throws(ImportError) {
    let piece: Data
    do {
      piece = try handle.read(upToCount: 1 << 16) ?? Data()
    } catch {
      throw ImportError(file: name, line: 0, reason: "cannot be read on: \(error)")
    }
    bytesRead += piece.count
    var records: [CSVRecord] = []
    do throws(CSVError) {
      if piece.isEmpty {
        isAtEnd = true
        try parser.finish(into: &records)
      } else {
        try parser.parse([UInt8](piece), into: &records)
      }
    } catch {
      throw ImportError(file: name, line: error.line, reason: error.reason)
    }
    waiting = records[...]
  }
}
