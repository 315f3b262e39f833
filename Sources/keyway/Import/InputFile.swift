import Foundation
import Glibc
import Store

/// The text of a file or of standard input as UTF-8, read piece by piece.
struct InputFile {
  /// The name that stands for standard input.
  static let standardInput = "-"

  let name: String
  /// How large the file is; nil where that is not known.
  let size: Int?
  private(set) var bytesRead = 0
  private let handle: FileHandle
  private var decoder: TextDecoder
  private var failure: ImportError?
  private var isAtEnd = false

  /// Opens a file, or standard input for `-`, in an encoding that `TextDecoder` knows. Throws a `CommandFailure`.
  init(_ name: String, encoding: String? = nil) throws {
    decoder = TextDecoder(encoding: encoding)
    guard name != Self.standardInput else {
      self.name = "stdin"
      handle = .standardInput
      size = nil
      return
    }
    guard let handle = FileHandle(forReadingAtPath: name) else {
      throw CommandFailure("\(name): there is no such file, or it cannot be read")
    }
    self.name = name
    self.handle = handle
    size = (try? FileManager.default.attributesOfItem(atPath: name))?[.size] as? Int
  }

  /// The next piece, of whole characters; nil at the end. Throws where the file cannot be read on, and behind the text
  /// that is in its encoding.
  mutating func next() throws(ImportError) -> [UInt8]? {
    while failure == nil, !isAtEnd {
      let piece: Data
      do {
        piece = try handle.read(upToCount: 1 << 16) ?? Data()
      } catch {
        throw ImportError(reason: "cannot be read on: \(error.systemReason)")
      }
      bytesRead += piece.count
      isAtEnd = piece.isEmpty
      let text: [UInt8]
      (text, failure) = decoder.decode(piece, isLast: isAtEnd)
      if !text.isEmpty { return text }
    }
    if let failure { throw failure }
    return nil
  }
}

/// A decoder that turns a file of some encoding into UTF-8, piece by piece, and finds the bytes that are not of it.
///
/// UTF-8 is checked here, since `iconv` takes five-byte sequences and values above U+10FFFF for it; all other encodings
/// are read by `iconv`.
struct TextDecoder {
  /// What a decoder makes of a piece: its text, and what is wrong behind the text.
  typealias Output = (text: [UInt8], failure: ImportError?)

  private static let defaultEncoding = "UTF-8"
  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
  /// The first bytes by which a file names its encoding, the longer before those that they begin with.
  private static let marks: [(bytes: [UInt8], encoding: String)] = [
    ([0xFF, 0xFE, 0, 0], "UTF-32LE"), ([0, 0, 0xFE, 0xFF], "UTF-32BE"), ([0xFF, 0xFE], "UTF-16LE"),
    ([0xFE, 0xFF], "UTF-16BE"),
  ]

  /// The encoding that the command line names; nil for UTF-8, or the one that a byte order mark names.
  private let named: String?
  private var encoding = Self.defaultEncoding
  private var conversion: Conversion?
  private var hasBegun = false
  private var mayHaveMark = true
  /// Bytes of the file that are not converted yet, and converted ones that are no whole character yet.
  private var raw: [UInt8] = []
  private var unchecked: [UInt8] = []
  private var line = 1
  /// How many characters of the line are before what is next; of UTF-8, how many bytes.
  private var column = 0

  /// A decoder of a file in an encoding that `isKnown`; nil is UTF-8, or what a byte order mark says.
  init(encoding: String?) {
    named = encoding
  }

  /// True if files in this encoding can be read. Its names are those of `iconv`, in letters of either case.
  static func isKnown(_ encoding: String) -> Bool {
    // Behind a slash, iconv takes orders to leave out what it cannot convert.
    !encoding.isEmpty && !encoding.contains("/") && Conversion(from: encoding) != nil
  }

  /// The text of the next piece as whole characters of UTF-8, without a byte order mark. After a failure, there is
  /// nothing more to decode.
  mutating func decode(_ piece: some Sequence<UInt8>, isLast: Bool) -> Output {
    raw += piece
    if !hasBegun {
      guard raw.count >= 4 || isLast else { return ([], nil) }
      if let failure = begin() { return ([], failure) }
    }
    var failure: ImportError?
    var wrong: ArraySlice<UInt8>?
    if let conversion {
      wrong = conversion.convert(&raw, into: &unchecked, isLast: isLast)
    } else {
      unchecked += raw
      raw = []
    }
    let text = checkedText(isLast: isLast && wrong == nil, &failure)
    if let wrong, failure == nil { failure = mistake(wrong, isAtEnd: wrong.endIndex == raw.endIndex && isLast) }
    return (text, failure)
  }

  /// Settles the encoding. Returns the mistake that it is where the file's mark names another.
  private mutating func begin() -> ImportError? {
    hasBegun = true
    encoding = named ?? Self.marks.first { raw.starts(with: $0.bytes) }?.encoding ?? Self.defaultEncoding
    guard !["UTF-8", "UTF8"].contains(encoding.uppercased()) else { return nil }
    guard !raw.starts(with: Self.byteOrderMark) else {
      return ImportError(
        line: 1, reason: "the file begins with the byte order mark of UTF-8, and --encoding says \(encoding)",
        hint: "without --encoding it is read as UTF-8")
    }
    conversion = Conversion(from: encoding)
    return nil
  }

  /// Takes off what is whole and valid of `unchecked`.
  private mutating func checkedText(isLast: Bool, _ failure: inout ImportError?) -> [UInt8] {
    if mayHaveMark {
      guard unchecked.count >= 3 || isLast else { return [] }
      mayHaveMark = false
      if unchecked.starts(with: Self.byteOrderMark) { unchecked.removeFirst(3) }
    }
    // Without a mark, UTF-16 looks like UTF-8 with a NUL at every other place.
    let ascii = conversion == nil && line == 1 && column == 0 ? unchecked.prefix(2).firstIndex(of: 0) : nil
    if let ascii {
      failure = ImportError(
        line: 1, reason: "the file is not UTF-8 but looks like UTF-16",
        hint: "--encoding \(ascii == 0 ? "utf-16be" : "utf-16le") reads it")
      return []
    }
    var end = unchecked.count
    var wrong: Range<Int>?
    do {
      _ = try UTF8Span(validating: unchecked.span)
    } catch {
      end = error.byteOffsets.lowerBound
      if error.byteOffsets.upperBound < unchecked.count || error.kind != .truncatedScalar || isLast {
        wrong = error.byteOffsets
      }
    }
    let text = Array(unchecked[..<end])
    count(text)
    if let wrong { failure = mistake(unchecked[wrong], isAtEnd: isLast && wrong.upperBound == unchecked.count) }
    unchecked.removeFirst(end)
    return text
  }

  private mutating func count(_ text: [UInt8]) {
    let lineStart = text.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 }
    if lineStart != nil {
      line += text.count { $0 == UInt8(ascii: "\n") }
      column = 0
    }
    let rest = text[(lineStart ?? 0)...]
    column += conversion == nil ? rest.count : rest.count { $0 & 0xC0 != 0x80 }
  }

  private func mistake(_ bytes: ArraySlice<UInt8>, isAtEnd: Bool) -> ImportError {
    let shown = bytes.prefix(4).map { "0x" + ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
    let place = (conversion == nil ? "byte" : "character") + " \(column + 1)"
    let cut = isAtEnd ? ", where the file ends" : ""
    let hint =
      named == nil
      ? "--encoding names the encoding of the file; windows-1252 is that of many spreadsheets in Europe and America"
      : "--encoding names another encoding than \(encoding); without it, the file is UTF-8, or UTF-16 by its mark"
    return ImportError(
      line: line, reason: "\(place) of the line is not \(encoding): \(shown.joined(separator: " "))\(cut)", hint: hint)
  }
}

/// A conversion of `iconv` into UTF-8, and what it remembers between two pieces.
private final class Conversion {
  private let handle: iconv_t
  private var buffer = [CChar](repeating: 0, count: 1 << 16)
  private var inputLeft = 0

  /// A conversion from an encoding; nil for an unknown one.
  init?(from encoding: String) {
    guard let handle = iconv_open("UTF-8", encoding), handle != iconv_t(bitPattern: -1) else { return nil }
    self.handle = handle
  }

  deinit { iconv_close(handle) }

  /// Moves what can be converted from `raw` to the end of `text`, and returns the bytes that are not of the encoding;
  /// nil where there are none. A character that is not whole stays in `raw`, unless the file ends with it.
  func convert(_ raw: inout [UInt8], into text: inout [UInt8], isLast: Bool) -> ArraySlice<UInt8>? {
    var mistake: Int32
    repeat {
      mistake = raw.withUnsafeMutableBytes { input in
        var start = input.baseAddress?.assumingMemoryBound(to: CChar.self)
        var count = input.count
        defer { inputLeft = count }
        return run(&start, &count, into: &text)
      }
      raw.removeFirst(raw.count - inputLeft)
    } while mistake == E2BIG
    if mistake == EILSEQ { return raw.prefix(1) }
    guard isLast else { return nil }
    // Some encodings keep a letter back, for an accent that may come behind it.
    _ = run(nil, nil, into: &text)
    return raw.isEmpty ? nil : raw[...]
  }

  /// Converts until the buffer is full, and returns the error number; 0 where all was converted.
  private func run(
    _ input: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, _ inputLeft: UnsafeMutablePointer<Int>?,
    into text: inout [UInt8]
  ) -> Int32 {
    buffer.withUnsafeMutableBufferPointer { output in
      var start = output.baseAddress
      var left = output.count
      let mistake = iconv(handle, input, inputLeft, &start, &left) == -1 ? errno : 0
      text += output[..<(output.count - left)].lazy.map { UInt8(bitPattern: $0) }
      return mistake
    }
  }
}
