/// The records of a CSV file, read piece by piece.
///
/// A first line such as `sep=;`, by which some spreadsheets name the delimiter, is not a record.
struct CSVFile {
  private(set) var file: InputFile
  private let delimiter: UInt8?
  private var parser: CSVParser
  private var hasBegun = false
  private var waiting: ArraySlice<CSVRecord> = []
  /// The error after the waiting records.
  private var failure: ImportError?
  private var isAtEnd = false

  /// Reads the records of a file with this delimiter. Nil means the delimiter that the file names, or else a comma.
  init(_ file: InputFile, delimiter: UInt8? = nil) {
    self.file = file
    self.delimiter = delimiter
    parser = CSVParser(delimiter: delimiter ?? UInt8(ascii: ","))
  }

  /// Returns the next record, or nil at the end. Throws an error of the file after all records before it.
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

  /// Returns the first piece, after the line that names the delimiter if there is one.
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

/// One record of a CSV file.
struct CSVRecord: Hashable, Sendable {
  /// The line of the file on which it begins, from 1; a record with line breaks in quotation marks covers several.
  var line: Int
  var fields: [CSVField]
}

/// One field of a record.
struct CSVField: Hashable, Sendable {
  /// The text, without the quotation marks around it.
  var text: String
  /// True if the field was in quotation marks: `""` is an empty text, an empty field without them is the absence of a
  /// value.
  var isQuoted: Bool
}

/// A parser of CSV by RFC 4180 that accepts a file in pieces and returns its records as they are complete.
///
/// A parser of our own: SwiftCSV 0.10 needs the whole text before the first row, has no line numbers, and does not tell
/// whether a field was quoted, while an import runs in bounded memory, reports where it stopped, and treats `""` as an
/// empty text. Beyond the RFC it accepts a line feed alone as the end of a record, and skips empty lines and lines of
/// delimiters only.
struct CSVParser: Sendable {
  /// The maximum size of a record. A larger one is an error, most likely an unclosed quotation mark.
  private static let defaultMaximumRecordBytes = 1 << 20

  private enum State: Sendable {
    case fieldStart, unquoted, quoted, quoteInQuoted, afterCarriageReturn
  }

  /// The bytes that cannot be delimiters, because they have another meaning.
  static let reserved: Set<UInt8> = [UInt8(ascii: "\""), UInt8(ascii: "\r"), UInt8(ascii: "\n")]

  private let maximumRecordBytes: Int
  private let delimiter: UInt8
  private var state = State.fieldStart
  private var field: [UInt8] = []
  private var isQuoted = false
  private var fields: [CSVField] = []
  private var recordBytes = 0
  private var line: Int
  private var recordLine: Int

  /// Creates a parser of records whose fields are separated by `delimiter`, an ASCII byte that is not `reserved`.
  /// `line` is the line of the first record.
  init(
    maximumRecordBytes: Int = defaultMaximumRecordBytes, delimiter: UInt8 = UInt8(ascii: ","), line: Int = 1
  ) {
    self.delimiter = delimiter
    (self.line, recordLine) = (line, line)
    self.maximumRecordBytes = maximumRecordBytes
  }

  /// Appends the records that the next piece of the file completes. Fields must be UTF-8.
  mutating func parse(_ bytes: some Sequence<UInt8>, into records: inout [CSVRecord]) throws(ImportError) {
    for byte in bytes {
      try take(byte, into: &records)
    }
  }

  /// Appends the last record if the file ends without a line break.
  mutating func finish(into records: inout [CSVRecord]) throws(ImportError) {
    switch state {
    case .quoted: throw ImportError(line: recordLine, reason: "a quotation mark is never closed")
    case .afterCarriageReturn: throw lonelyCarriageReturn
    case .fieldStart where fields.isEmpty: return
    case .fieldStart, .unquoted, .quoteInQuoted: endRecord(into: &records)
    }
  }

  private var lonelyCarriageReturn: ImportError {
    ImportError(line: line, reason: "a carriage return without a line feed")
  }

  private mutating func take(_ byte: UInt8, into records: inout [CSVRecord]) throws(ImportError) {
    recordBytes += 1
    guard recordBytes <= maximumRecordBytes else {
      throw ImportError(line: recordLine, reason: "the record is larger than \(maximumRecordBytes) bytes")
    }
    switch state {
    case .afterCarriageReturn:
      guard byte == UInt8(ascii: "\n") else { throw lonelyCarriageReturn }
      endLine(into: &records)
    case .quoted:
      if byte == UInt8(ascii: "\"") {
        state = .quoteInQuoted
      } else {
        if byte == UInt8(ascii: "\n") { line += 1 }
        field.append(byte)
      }
    case .quoteInQuoted where byte == UInt8(ascii: "\""):
      field.append(byte)
      state = .quoted
    case .fieldStart where byte == UInt8(ascii: "\""):
      isQuoted = true
      state = .quoted
    case .fieldStart, .unquoted, .quoteInQuoted:
      try takeOutsideQuotes(byte, into: &records)
    }
  }

  private mutating func takeOutsideQuotes(_ byte: UInt8, into records: inout [CSVRecord]) throws(ImportError) {
    switch byte {
    case delimiter: endField()
    case UInt8(ascii: "\r"): state = .afterCarriageReturn
    case UInt8(ascii: "\n"): endLine(into: &records)
    case _ where state == .quoteInQuoted:
      throw ImportError(line: line, reason: "there is text between a closing quotation mark and the next delimiter")
    case UInt8(ascii: "\""):
      throw ImportError(line: line, reason: "a quotation mark inside a field that does not begin with one")
    default:
      field.append(byte)
      state = .unquoted
    }
  }

  private mutating func endField() {
    fields.append(CSVField(text: String(decoding: field, as: UTF8.self), isQuoted: isQuoted))
    field.removeAll(keepingCapacity: true)
    isQuoted = false
    state = .fieldStart
  }

  private mutating func endLine(into records: inout [CSVRecord]) {
    line += 1
    endRecord(into: &records)
  }

  private mutating func endRecord(into records: inout [CSVRecord]) {
    endField()
    // Spreadsheets write the delimiters of empty rows.
    let isEmptyLine = fields.allSatisfy { $0 == CSVField(text: "", isQuoted: false) }
    if !isEmptyLine { records.append(CSVRecord(line: recordLine, fields: fields)) }
    fields = []
    recordBytes = 0
    recordLine = line
  }
}
