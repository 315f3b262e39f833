import Foundation
import Glibc
import Store

/// The text of a file or of standard input as UTF-8, read piece by piece.
struct InputFile {
  /// The name of standard input.
  static let standardInput = "-"

  let name: String
  /// The size of the file in bytes, or nil if it is not known.
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
      throw CommandFailure("\(name): does not exist or cannot be read")
    }
    self.name = name
    self.handle = handle
    size = (try? FileManager.default.attributesOfItem(atPath: name))?[.size] as? Int
  }

  /// Returns the next piece, of whole characters, or nil at the end. Throws if reading fails, or, after all valid text,
  /// if the file is not in its encoding.
  mutating func next() throws(ImportError) -> [UInt8]? {
    while failure == nil, !isAtEnd {
      let piece: Data
      do {
        piece = try handle.read(upToCount: 1 << 16) ?? Data()
      } catch {
        throw ImportError(reason: "cannot be read: \(error.systemReason)")
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

/// Converts a file in some encoding to UTF-8, piece by piece, and finds invalid bytes.
///
/// UTF-8 is checked here, since `iconv` accepts five-byte sequences and values above U+10FFFF. All other encodings are
/// read by `iconv`.
struct TextDecoder {
  /// The result for a piece: its text, and the error after the text.
  typealias Output = (text: [UInt8], failure: ImportError?)

  private static let defaultEncoding = "UTF-8"
  private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
  /// The byte order marks of encodings. A longer one precedes the one that it begins with.
  private static let marks: [(bytes: [UInt8], encoding: String)] = [
    ([0xFF, 0xFE, 0, 0], "UTF-32LE"), ([0, 0, 0xFE, 0xFF], "UTF-32BE"), ([0xFF, 0xFE], "UTF-16LE"),
    ([0xFE, 0xFF], "UTF-16BE"),
  ]

  /// The encoding of the command line. Nil for UTF-8, or the encoding of a byte order mark.
  private let named: String?
  private var encoding = Self.defaultEncoding
  private var conversion: Conversion?
  private var hasBegun = false
  private var mayHaveMark = true
  /// The bytes of the file that are not converted yet, and the converted ones that are not a whole character yet.
  private var raw: [UInt8] = []
  private var unchecked: [UInt8] = []
  private var line = 1
  /// The number of characters of the line that have been read, or of bytes if the file is UTF-8.
  private var column = 0

  /// Creates a decoder for an encoding that `isKnown`. Nil is UTF-8, or the encoding of a byte order mark.
  init(encoding: String?) {
    named = encoding
  }

  /// Returns true if files in this encoding can be read. Names are those of `iconv`, in letters of either case.
  static func isKnown(_ encoding: String) -> Bool {
    // After a slash, iconv accepts options to omit what it cannot convert.
    !encoding.isEmpty && !encoding.contains("/") && Conversion(from: encoding) != nil
  }

  /// Returns the text of the next piece as whole characters of UTF-8, without a byte order mark. After a failure,
  /// nothing more can be decoded.
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

  /// Determines the encoding. Returns an error if the byte order mark of the file contradicts it.
  private mutating func begin() -> ImportError? {
    hasBegun = true
    encoding = named ?? Self.marks.first { raw.starts(with: $0.bytes) }?.encoding ?? Self.defaultEncoding
    guard !["UTF-8", "UTF8"].contains(encoding.uppercased()) else { return nil }
    guard !raw.starts(with: Self.byteOrderMark) else {
      return ImportError(
        line: 1, reason: "the file begins with the byte order mark of UTF-8, but --encoding is \(encoding)",
        hint: "without --encoding it is read as UTF-8")
    }
    conversion = Conversion(from: encoding)
    return nil
  }

  /// Removes and returns the whole, valid characters at the beginning of `unchecked`.
  private mutating func checkedText(isLast: Bool, _ failure: inout ImportError?) -> [UInt8] {
    if mayHaveMark {
      guard unchecked.count >= 3 || isLast else { return [] }
      mayHaveMark = false
      if unchecked.starts(with: Self.byteOrderMark) { unchecked.removeFirst(3) }
    }
    // Without a mark, UTF-16 looks like UTF-8 with a NUL in every other byte.
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

/// A conversion to UTF-8 by `iconv`, with its state between two pieces.
private final class Conversion {
  private let handle: iconv_t
  private var buffer = [CChar](repeating: 0, count: 1 << 16)
  private var inputLeft = 0

  /// Creates a conversion from an encoding. Nil for an unknown one.
  init?(from encoding: String) {
    guard let handle = iconv_open("UTF-8", encoding), handle != iconv_t(bitPattern: -1) else { return nil }
    self.handle = handle
  }

  deinit { iconv_close(handle) }

  /// Converts as much as possible from `raw` to the end of `text`. Returns the invalid bytes, or nil if there are none.
  /// An incomplete character stays in `raw`, unless the file ends with it.
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
    // Some encodings hold a letter back, for an accent that may follow it.
    _ = run(nil, nil, into: &text)
    return raw.isEmpty ? nil : raw[...]
  }

  /// Converts until the buffer is full. Returns the error number, or 0 if everything was converted.
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
