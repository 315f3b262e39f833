/// The records of a CSV file, read piece by piece.
///
/// A first line such as `sep=;`, by which some spreadsheets name the delimiter, is not a record.
struct CSVFile {
  private(set) var file: InputFile
  private let delimiter: UInt8?
  private var parser: CSVParser
  private var hasBegun = false
  private var waiting: ArraySlice<CSVRecord> = []
  /// The mistake behind the records that wait.
  private var failure: ImportError?
  private var isAtEnd = false

  /// The records of a file with this delimiter; nil is what the file says, or else a comma.
  init(_ file: InputFile, delimiter: UInt8? = nil) {
    self.file = file
    self.delimiter = delimiter
    parser = CSVParser(delimiter: delimiter ?? UInt8(ascii: ","))
  }

  /// The next record; nil at the end. Throws what is wrong in the file behind the records before it.
  mutating func next() throws(ImportError) -> CSVRecord? {
    while waiting.isEmpty, !isAtEnd {
      if let failure { throw failure }
      var records: [CSVRecord] = []
      do throws(ImportError) {
        let piece = hasBegun ? try file.next() : try firstPiece()
        if let piece {
          try parser.parse(piece, into: &records)
        } else {
          isAtEnd = true
          try parser.finish(into: &records)
        }
      } catch {
        isAtEnd = false
        failure = error
      }
      waiting = records[...]
    }
    return waiting.popFirst()
  }

  /// The first piece behind the line that names the delimiter, if there is one.
  private mutating func firstPiece() throws(ImportError) -> [UInt8]? {
    hasBegun = true
    var start: [UInt8] = []
    while start.count < "sep=;\r\n".utf8.count, let piece = try file.next() { start += piece }
    guard let end = start.firstIndex(of: UInt8(ascii: "\n")) else { return start }
    let line = String(decoding: start[..<end], as: UTF8.self)
    guard let match = line.wholeMatch(of: /(?i)sep=([^"\r\n])\r?/), let byte = match.1.utf8.first, byte < 0x80 else {
      return start
    }
    parser = CSVParser(delimiter: delimiter ?? byte, line: 2)
    return Array(start[(end + 1)...])
  }
}
