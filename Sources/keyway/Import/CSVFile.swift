/// The records of a CSV file, read piece by piece.
struct CSVFile {
  private(set) var file: InputFile
  private var parser: CSVParser
  private var waiting: ArraySlice<CSVRecord> = []
  private var isAtEnd = false

  init(_ file: InputFile, delimiter: UInt8 = UInt8(ascii: ",")) {
    self.file = file
    parser = CSVParser(delimiter: delimiter)
  }

  /// The next record; nil at the end.
  mutating func next() throws(ImportError) -> CSVRecord? {
    while waiting.isEmpty, !isAtEnd {
      var records: [CSVRecord] = []
      if let piece = try file.next() {
        try parser.parse(piece, into: &records)
      } else {
        isAtEnd = true
        try parser.finish(into: &records)
      }
      waiting = records[...]
    }
    return waiting.popFirst()
  }
}
